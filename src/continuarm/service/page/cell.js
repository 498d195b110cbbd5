// One cell: what is known in its middle, and a way to freeze its contexts.

import { binInWords } from "./about.js";
import { query } from "./api.js";
import { h, table } from "./dom.js";
import { openFreeze } from "./freeze.js";
import { plusMinus } from "./numbers.js";

const FROZEN = "It is frozen: it answers as of then, and its payoffs are counted and not learned.";

/** changed: called when what is frozen may be another. */
export function showCell(room, known, cell, changed) {
  const { name, context, decision, payoff } = known;
  const middle = Object.fromEntries(Object.entries(cell.context).map(([key, value]) => [key, Number(value.toPrecision(6))]));
  const held = context.filter((side) => !(side.name in cell.segment))
    .map((side) => `${side.name} ${side.text(cell.context[side.name])}`);
  const segment = Object.fromEntries(Object.entries(cell.segment).map(([key, ends]) => [key,
    ends.map((end) => Number(end.toPrecision(8)))]));
  const freeze = () => openFreeze(known, known.refresh, { segment: cell.frozen ? null : segment, closed: changed });
  room.replaceChildren(
    h("h2", binInWords(context, cell)),
    held.length ? h("p.note", `What is known at ${held.join(", ")}.`) : "",
    h("dl.numbers", [[`Expected ${payoff.name}`, cell.expected, cell.expected_error, "of its best decision"],
      ["More than today", cell.gain, cell.gain_error, "of what is done today"]].map(([what, value, error, aside]) =>
      h("div", h("dt", what), h("dd", value === null ? "–" : payoff.text(plusMinus(value, error))),
        h("dd.aside", value === null ? "not known yet" : aside)))),
    table("In the middle of the segment", [{ name: "Coordinate" }, { name: "Best", number: true },
      { name: "Payoffs say", number: true }, { name: "Today", number: true }], decision.map((side) => [
      side.label, side.text(cell.best[side.name]),
      Number.isFinite(cell.error?.[side.name] ?? NaN) ? plusMinus(cell.peak[side.name], cell.error[side.name]) : "not shown yet",
      side.text(cell.today[side.name])])),
    cell.frozen ? h("p.note.apart", FROZEN) : "",
    h("div.row", h("button", { type: "button", onclick: freeze, disabled: known.found.archived },
      cell.frozen ? "What is frozen…" : "Freeze this segment…"),
      h("a.button", { href: `#/experiments/${encodeURIComponent(name)}/ask${query(middle)}` },
        "What would it decide here?")));
}
