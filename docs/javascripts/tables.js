// A number and its interval stay on one line, so that a column can be compared.
for (const cell of document.querySelectorAll(".md-typeset td"))
  if (/^[-−±×<>=≤≥≈^\d.,;:%\[\]() ]*$/.test(cell.textContent)) cell.classList.add("number");
