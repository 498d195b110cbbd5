// An experiment as the API says it, and what more than one view shows of it.

import { experiment, get } from "./api.js";
import { h } from "./dom.js";
import { count, decimalsOf, interval, plain, plusMinus, within } from "./numbers.js";

export const about = (name) => get(experiment(name));

/**
 * The dimensions of a box: {index, name, label with its unit, low, high, span, text of a value,
 * and text among others in a column}. */
export const sidesOf = ({ low, high, names, units, spacing, ending }) => low.map((from, index) => {
  const span = high[index] - from, decimals = decimalsOf(spacing[index], ending[index]);
  return { index, name: names[index], label: labelled(names[index], units?.[index]), low: from, high: high[index], span,
    text: (value) => within(value, span, decimals), cell: (value) => within(value, span, decimals, false) };
});

const labelled = (name, unit) => (unit?.trim() ? `${name} (${unit.trim()})` : name);

/** What a payoff is: its name, its label with the unit, and a text with the unit behind it. */
export function payoffOf({ payoff: { name, unit } }) {
  const own = name ?? "payoff";
  return { name: own, label: labelled(own, unit), heading: labelled("Payoff", unit), text: (said) => (unit?.trim() ? `${said}\u00a0${unit.trim()}` : said) };
}

/** The part of the contexts that a bin is for, by the edges that are its own. */
export function binInWords(sides, { low, high }) {
  const parts = sides.map((side, k) => {
    const [from, to] = [low[k] > side.low, high[k] < side.high];
    const [a, b] = [side.text(low[k]), side.text(high[k])];
    if (from && to) return `${side.name} ${a} to ${b}`;
    if (from) return `${side.name} from ${a}`;
    return to ? `${side.name} under ${b}` : null;
  });
  return parts.filter(Boolean).join(", ") || "all contexts";
}

const MARKS = { serious: "■", warning: "▲", note: "●", good: "✓", archived: "–", learning: "○", paused: "❚❚", frozen: "■" };

/** A state in one word, with a mark that needs no colour. */
export const pill = (word, text = word) => h(`span.pill.${word}`,
  h("span", { "aria-hidden": "true" }, MARKS[word]), text);

/** Its health; of nothing that was paid, nothing can be good. */
export const healthOf = ({ health, counts }) => (health === "good" && !counts.payoffs
  ? pill("learning", "no payoffs yet") : pill(health));

/** Decisions by what became of them. */
export const countsOf = ({ counts }) => [["Decisions", counts.decisions], ["Payoffs", counts.payoffs],
  ["Open", counts.open],
  ["Late", counts.late], ["Lost", counts.lost]].map(([what, value]) => [what, count(value)]);

/** The mean payoff lately, and what it was at the beginning. */
export function meansOf(found) {
  const { beginning, lately } = found.payoff, { text } = payoffOf(found);
  if (!lately) return ["–", "no payoff yet"];
  const shown = ({ mean, error }) => text(plusMinus(mean, error));
  return [shown(lately), beginning ? `${shown(beginning)} at the beginning` : ""];
}

/** How much better than the incumbent, with its interval. */
export function upliftOf({ uplift }) {
  if (!uplift) return ["–", "no share is the incumbent's"];
  if (!uplift.per_decision) return ["–", "too little is known yet"];
  const { low, estimate, high } = uplift.percent ?? uplift.per_decision;
  const said = interval([low, estimate, high], uplift.percent ? " %" : "");
  return [said.estimate, said.range];
}

export { count, plain };
