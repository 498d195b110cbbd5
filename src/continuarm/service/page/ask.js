// What would it decide? For a context: the decision, why, and the payoff expected around it.

import { experiment, get, query } from "./api.js";
import { legendOf } from "./charts.js";
import { empty, fresh, h, noNumber, refuse, say, sentence } from "./dom.js";
import { plusMinus } from "./numbers.js";
import { KEYS, payoffFigures } from "./payoff.js";

export async function showAsk(room, known) {
  const { name, context, decision } = known;
  const fields = context.map((side) => field(side, known.given.get(side.name)));
  const error = h("p.error", { role: "alert", hidden: true });
  const answer = h("div.answer");
  const form = h("form.ask", h("h2", "What would it decide?"),
    context.length ? h("p.note", "Type a context. Nothing is decided, and nothing changes.") : null,
    h("div.fields", fields.map((one) => one.element)), error, h("button.primary", "Show the decision"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await ask();
  });

  async function ask() {
    error.hidden = true;
    fields.forEach((one) => one.wrong(null));
    const given = Object.fromEntries(fields.map((one, k) => [context[k].name, one.input.value.trim()]));
    try {
      const why = await get(experiment(name, `/explain${query(given)}`));
      const charts = await payoffFigures(known, given);
      answer.replaceChildren(...said(why, known, charts).flat());
      say(`The decision: ${decision.map((side, k) => `${side.name} ${side.text(why.centre[k])}`).join(", ")}`);
    } catch (refused) {
      const at = context.findIndex(({ name: own }) => refused.field === own || refused.message.includes(` ${own} `) || refused.message.includes(`\`${own}\``));
      const wrong = context.map((side, k) => unfit(side, fields[k].input.value, known) ?? (k === at ? refused.message : null));
      fields.forEach((one, k) => one.wrong(wrong[k]));
      const first = wrong.findIndex(Boolean);
      if (first < 0) refuse(error, refused.message);
      else answer.replaceChildren(empty("No decision is shown.", "The context must be mended first."));
      fields[Math.max(first, 0)]?.input.focus();
    }
  }

  room.replaceChildren(h("div.two", form, answer));
  await ask();
}

/** What is wrong with a number of a refused context: the API names the first one, here all are named. */
function unfit({ name, low, high, text }, typed, { found }) {
  const value = Number(typed), outside = found.options.outside === "refuse" && !(low <= value && value <= high);
  return noNumber(typed) ?? (outside ? `\`${text(low)} <= ${name} <= ${text(high)}\` must hold, but got ${typed.trim()}` : null);
}

/** A number of the context, with its range. */
function field(side, given) {
  const [id, hint, wrong] = [fresh("context"), fresh("range"), fresh("wrong")];
  const middle = Number(((side.low + side.high) / 2).toPrecision(4));
  const input = h("input", { id, inputmode: "decimal", autocomplete: "off", value: given ?? String(middle),
    "aria-describedby": `${hint} ${wrong}` });
  const text = h("span.error", { id: wrong });
  return {
    input,
    element: h("div.field", h("label", { for: id }, side.label), input,
      h("span.hint", { id: hint }, `${side.text(side.low)} to ${side.text(side.high)}`), text),
    wrong(message) {
      text.replaceChildren(...sentence(message ?? ""));
      if (message) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}

function said(why, { decision, payoff }, charts) {
  const [first, ...rest] = why.text.split("\n");
  return [
    h("h2", "The decision"),
    h("dl.numbers.decided", decision.map((side, k) => h("div", h("dt", side.label),
      h("dd", side.text(why.centre[k])),
      h("dd.aside", `today ${side.text(why.start[k])}`,
        why.peak_error?.[k] ? `; payoffs put the best at ${plusMinus(why.peak[k], why.peak_error[k])}` : "")))),
    h("h2", "Why"),
    h("p.why", first), h("ul.why", rest.map((line) => h("li", line))),
    h("h2", `Expected ${payoff.name} over each coordinate`),
    charts.length ? [legendOf(KEYS), h("div.charts", charts)] : empty("Too little is known here yet.",
      "When a bin has learned enough payoffs, what it expects of each coordinate is shown here."),
  ];
}
