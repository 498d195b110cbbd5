// One bin: what it has learned and how sure that is, what was tried, and its guards.

import { binInWords } from "./about.js";
import { experiment, get, query, send } from "./api.js";
import { confirmed, h, refuse, say, table } from "./dom.js";
import { count, plusMinus } from "./numbers.js";

const FROZEN = "frozen: it answers with its best decision; payoffs are counted and not learned";

export async function showBin(room, known, bin, changed) {
  const { name, context, decision } = known;
  const middle = Object.fromEntries(context.map((side, k) => [side.name, Number(((bin.low[k] + bin.high[k]) / 2).toPrecision(6))]));
  const why = await get(experiment(name, `/explain${query(middle)}`));
  const guards = [...(bin.frozen ? [FROZEN] : []), ...why.guards.filter(({ guard }) => guard !== "freeze")
    .map(({ guard, says }) => `${guard}: ${says}`)];
  const error = h("p.error", { role: "alert", hidden: true });
  const word = bin.frozen ? "Unfreeze" : "Freeze";
  const button = h("button", { type: "button", onclick: () => steer(known, bin, error, changed) },
    `${word} this bin`);
  room.replaceChildren(
    h("h2", `Bin ${bin.id}`), h("p.note", binInWords(context, bin)),
    h("dl.numbers", numbers(bin, known.payoff).map(([what, value, aside]) => h("div", h("dt", what), h("dd", value),
      aside ? h("dd.aside", aside) : null))),
    table("In the middle of the bin", [{ name: "Coordinate" }, { name: "Best", number: true },
      { name: "Payoffs say", number: true },
      { name: "Tried", number: true }, { name: "Today", number: true }], decision.map((side, k) => [
      side.label, side.text(why.centre[k]), why.peak_error?.[k] ? plusMinus(why.peak[k],
        why.peak_error[k]) : "not shown yet",
      bin.tried ? bin.tried[side.name].map((end) => side.text(end)).join(" to ") : "–",
        side.text(why.start[k])])),
    h("h2", "Guards"),
    guards.length ? h("ul.why", guards.map((line) => h("li", line))) : h("p.note", "Nothing holds it back."),
    error, h("div.row", button,
      h("a.button", { href: `#/experiments/${encodeURIComponent(name)}/ask${query(middle)}` },
      "What would it decide here?")));
}

/** A part of a bin that was cut counts from then on; it knows what that bin had learned. */
function numbers(bin, payoff) {
  const since = bin.level ? "since it was cut out" : null;
  return [["Decisions", count(bin.visits), since], ["Payoffs", count(bin.payoffs), since],
    [`Expected ${payoff.name}`, payoff.text(plusMinus(bin.expected, bin.expected_error)), "of its best decision"]];
}

async function steer(known, bin, error, changed) {
  const verb = bin.frozen ? "unfreeze" : "freeze";
  const text = bin.frozen ? "It will try decisions and learn from payoffs again."
    : "It will answer with its best decision known until it is unfrozen. Payoffs that come meanwhile are counted and never learned.";
  if (!(await confirmed(`${bin.frozen ? "Unfreeze" : "Freeze"} bin ${bin.id}?`, `${text} This needs the scope admin.`,
    bin.frozen ? "Unfreeze" : "Freeze"))) return;
  try {
    await send("POST", experiment(known.name, `/bins/${bin.id}/${verb}`));
    say(`Bin ${bin.id} is ${bin.frozen ? "unfrozen" : "frozen"}`);
    await changed(!bin.frozen);
  } catch (refused) {
    refuse(error, refused.message);
  }
}
