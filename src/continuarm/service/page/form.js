// A new experiment. Nothing is checked here: the API checks, and what it says stands at its field.

import { experiment, send } from "./api.js";
import { choice, fresh, h, noNumber, numberOf, refuse, say, sentence } from "./dom.js";

const OPTIONS = [
  ["share", "Share of the incumbent",
    "the part of decisions that stay as today, so that the uplift can be measured; 0, or 0.001 to 0.999"],
  ["reach", "Reach", "how far from what is known to be good it may try, as a part of each side; 0.1 if empty"],
  ["max_move", "Largest move",
    "how far from its reference a decision may be, in units of the decision; anywhere if empty"],
  ["ttl_seconds", "Time to live, in seconds", "a decision without a payoff is given up after it"],
  ["ttl", "Time to live, in decisions", "the same, counted in decisions"],
  ["missing", "Payoff of what never came", "what is learned of a decision that was given up; nothing if empty"],
  ["memory", "Memory, in decisions", "for payoffs that drift; all if empty"],
];

export async function showForm(room) {
  const places = new Map(); // the path of a value in the request → its field
  const name = field("Name", "at most 100 characters, without / and \\; it is part of the address");
  const after = field("Successor of", "the experiment whose payoffs it begins with; none if empty");
  const paid = [["name", field("Payoff", "what it is, such as profit per visitor; to show")],
    ["unit", field("Unit", "such as $; to show")]];
  const context = sides("Context", "context", places, ["low", "high"]);
  const decision = sides("Decision", "decision", places, ["low", "high", "spacing", "start"]);
  const rows = area("Coupled limits", "one per line, such as small <= large - 0.5");
  const options = OPTIONS.map(([key, text, hint]) => [key, field(text, hint, (typed) => typed.trim() && noNumber(typed))]);
  places.set("name", name);
  places.set("after", after);
  paid.forEach(([key, own]) => places.set(`payoff.${key}`, own));
  places.set("decision.rows", rows);
  options.forEach(([key, own]) => places.set(`options.${key}`, own));
  const outside = choice("Contexts outside their box are", [["refuse", "refused"], ["clip", "clipped, and said so"]],
    "refuse", () => {});
  const error = h("p.error", { role: "alert", tabindex: "-1", hidden: true });
  const form = h("form", { novalidate: true }, error,
    h("fieldset", h("legend", "Experiment"), h("div.options.tight", name.element, after.element,
      paid.map(([, own]) => own.element))),
    context.element, decision.element,
    h("fieldset", h("legend", "Limits and options"), h("div.one", rows.element), h("div.choices.apart", outside),
      h("div.options", options.map(([, own]) => own.element))),
    h("div.row", h("button.primary", "Create the experiment"), h("a.button", { href: "#/" }, "Cancel")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await create();
  });

  async function create() {
    error.hidden = true;
    places.forEach((own) => own.wrong(null));
    const called = name.input.value.trim();
    try {
      if (!called) throw Object.assign(new Error("an experiment needs a name"), { field: "name" });
      await send("PUT", experiment(called), request());
      say(`${called} is made`);
      location.hash = `#/experiments/${encodeURIComponent(called)}`;
    } catch (refused) {
      const place = placeOf(refused, places);
      const message = place?.unread() ?? refused.message.replace(/ - at `\$[^`]*`$/, "");
      if (place) {
        place.wrong(message);
        place.input.focus();
      } else {
        refuse(error, message);
        error.focus();
      }
    }
  }

  function request() {
    const [made, decided] = [context.values(), decision.values()];
    const { start, spacing, ...box } = decided;
    const lines = rows.input.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const given = Object.fromEntries(options.map(([key, own]) => [key,
      number(own.input.value)]).filter(([, value]) => value !== null));
    if (start.some((value) => value !== null)) given.start = start;
    const named = Object.fromEntries(paid.map(([key, own]) => [key, own.input.value.trim()]).filter(([, text]) => text));
    const follows = after.input.value.trim();
    return {
      ...(Object.keys(named).length ? { payoff: named } : {}), ...(follows ? { after: follows } : {}),
      policy: "recommended", outside: outside.querySelector("select").value, context: made, options: given,
      decision: { ...box, ...(spacing.some((v) => v !== null) ? { spacing: spacing.map((v) => v ?? 0) } : {}),
        ...(lines.length ? { rows: lines } : {}) },
    };
  }

  room.replaceChildren(h("h1", "New experiment"), form);
}

/** A number if it is one; what else was typed goes to the API as it is. */
function number(text) {
  const given = text.trim();
  return given === "" ? null : numberOf(given) ?? given;
}

/** unread: what is said of a text that cannot be read, where the API knows of a refusal only. */
function field(text, hint, unread) {
  return labelled(h("input", { autocomplete: "off" }), text, hint, unread);
}

function area(text, hint) {
  return labelled(h("textarea", { rows: 2 }), text, hint);
}

function labelled(input, text, hint, unread = () => null) {
  const [id, about, wrong] = [fresh("field"), fresh("hint"), fresh("wrong")];
  input.id = id;
  input.setAttribute("aria-describedby", hint ? `${about} ${wrong}` : wrong);
  const said = h("span.error", { id: wrong });
  const element = h("div.field", h("label", { for: id }, text), input,
    hint ? h("span.hint", { id: about }, hint) : null, said);
  return { input, element, unread: () => unread(input.value) || null, wrong: (message) => {
    said.replaceChildren(...sentence(message ?? ""));
    if (message) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  } };
}

const TEXTS = { name: "Name", unit: "Unit", low: "Lowest", high: "Highest", spacing: "Steps of", start: "Today" };

const NEEDED = new Set(["low", "high"]); // numbers of a side that may not be left empty

const MANY = { name: "names", unit: "units" }; // as the API calls them

/** The dimensions of a box, to which one can add. */
function sides(title, role, places, numbers) {
  const rows = [];
  const room = h("div.sides");
  const draw = () => {
    room.replaceChildren(...rows.map((row, k) => h(`div.side.${role}`,
      ["name", "unit", ...numbers].map((key) => row[key].element),
      h("button", { type: "button", "aria-label": `Remove ${row.name.input.value || `${role} ${k + 1}`}`,
        disabled: role === "decision" && rows.length === 1,
        onclick: () => { rows.splice(k, 1); draw(); } }, "Remove"))));
    for (const key of [...places.keys()]) if (isOfRow(key, role)) places.delete(key);
    rows.forEach((row, k) => ["name", "unit",
      ...numbers].forEach((key) => places.set(key === "start" ? `options.start[${k}]` : `${role}.${MANY[key] ?? key}[${k}]`, row[key])));
  };
  const add = () => {
    const row = Object.fromEntries(["name", "unit", ...numbers].map((key) => [key, field(TEXTS[key], null,
      numbers.includes(key) ? (typed) => (typed.trim() || NEEDED.has(key)) && noNumber(typed) : undefined)]));
    numbers.forEach((key) => { row[key].input.inputMode = "decimal"; });
    rows.push(row);
    draw();
    return row;
  };
  add();
  const element = h("fieldset", h("legend", title), h("p.note",
    role === "context" ? "What is known when a decision is wanted: one line for each number." : "What is decided: one line for each number. Steps and what is done today may be left empty."),
    room, h("button", { type: "button", onclick: () => add().name.input.focus() },
      `Add a ${role === "context" ? "context" : "coordinate"}`));
  const column = (key) => rows.map((row) => number(row[key].input.value));
  const texts = (key) => rows.map((row) => row[key].input.value.trim());
  const units = () => (texts("unit").some(Boolean) ? { units: texts("unit").map((unit) => unit || " ") } : {});
  return { element, values: () => ({ names: texts("name"), ...units(),
    ...Object.fromEntries(numbers.map((key) => [key, column(key)])) }) };
}

const isOfRow = (key, role) => (key.startsWith(`${role}.`) && key !== "decision.rows")
  || (role === "decision" && key.startsWith("options.start["));

/** The field that a refusal is about; of a box with one row, the one that its words name; else none. */
function placeOf({ field: path, message }, places) {
  if (!path) return null;
  const words = message.match(/\w+/g) ?? [];
  return places.get(path) ?? (places.has(`${path}.names[1]`) ? null
    : words.map((word) => places.get(`${path}.${word}[0]`)).find(Boolean));
}
