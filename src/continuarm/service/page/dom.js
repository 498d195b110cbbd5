// Elements, and what is said aloud.

/** h("button.primary", {type: "button", onclick}, "Save"): an element with its children. */
export function h(what, ...rest) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  return fill(element, rest);
}

/** The same for SVG. */
export function s(tag, ...rest) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), rest);
}

function fill(element, rest) {
  const [first] = rest;
  const plain = first && typeof first === "object" && !(first instanceof Node) && !Array.isArray(first);
  if (plain) for (const [name, value] of Object.entries(rest.shift())) set(element, name, value);
  element.append(...rest.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "style") Object.assign(element.style, value);
  else if (name === "value") element.value = value;
  else element.setAttribute(name, value === true ? "" : value);
}

let serial = 0;
/** An id that no other element has. */
export const fresh = (word) => `${word}-${++serial}`;

/** Let a screen reader say something. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

/** A table: columns [{name, number}], rows of cells (text, or an element); unseen: its caption. */
export function table(caption, columns, rows, { unseen } = {}) {
  const head = columns.map((c) => h(`th${c.number ? ".number" : ""}`, { scope: "col" }, c.name));
  const body = rows.map((row) =>
    h("tr", row.map((cell, k) => h(`td${columns[k].number ? ".number" : ""}`, cell === null ? "–" : cell))));
  const own = h("table", h("caption", { class: unseen ? "unseen" : null }, caption),
    h("thead", h("tr", head)), h("tbody", body));
  return h("div.scrolls", { tabindex: "0", role: "region", "aria-label": caption }, own);
}

/** A sentence whose `words` are code. */
export const marked = (text) => text.split("`").map((part, k) => (k % 2 ? h("code", part) : part));

/** What was refused, as a sentence: its `words` are code, and it begins with a capital. */
export const sentence = (text) => marked(text.charAt(0).toUpperCase() + text.slice(1));

/** Show what was refused in an element that is hidden until then. */
export function refuse(element, text) {
  element.replaceChildren(...sentence(text));
  element.hidden = false;
}

/** What a field of a form says of a text that is no number; null: it is one. */
export function noNumber(text) {
  const given = text.trim();
  if (given === "") return "a number is needed";
  return numberOf(given) === null ? `a number with a point is needed, such as 0.1, but got '${given}'` : null;
}

/** A number if a text is one; else null. */
export const numberOf = (text) => (/^[-+]?[\d.]+(e[-+]?\d+)?$/i.test(text.trim())
  && Number.isFinite(Number(text)) ? Number(text) : null);

/** A message in place of what is not there. */
export const empty = (title, ...more) => h("div.empty", h("p.title", title), ...more.map((text) => h("p", text)));

/** A choice with its label: options [[value, text]], and what happens when one is chosen. */
export function choice(text, options, value, chosen, attributes = {}) {
  const id = fresh("choice");
  const own = h("select", { id, onchange: () => chosen(own.value), ...attributes },
    options.map(([key, name]) => h("option", { value: key }, name)));
  own.value = value;
  return h("span.choice", h("label", { for: id }, text), own);
}

/** Ask before something is done: resolves to true or false. */
export function confirmed(title, text, word) {
  const id = fresh("title");
  const dialog = h("dialog", { "aria-labelledby": id }, h("h2", { id }, title), h("p", text),
    h("form.row", { method: "dialog" }, h("button.primary", { value: "yes" }, word),
      h("button", { value: "no" }, "Cancel")));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(dialog.returnValue === "yes");
  }));
}
