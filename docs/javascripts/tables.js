// A number with its interval, or a word or two, stays on one line, so that columns can be compared.
for (const cell of document.querySelectorAll(".md-typeset td")) {
  const text = cell.textContent.trim();
  if (text.length <= 22 || /^[-−±×<>=≤≥≈^\d.,;:%\[\]() ]*$/.test(text)) cell.classList.add("short");
}
