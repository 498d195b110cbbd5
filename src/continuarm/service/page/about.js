// An experiment as the API says it, and what more than one view shows of it.

import { experiment, get } from "./api.js";
import { h } from "./dom.js";
import { count, interval, plain, plusMinus, within } from "./numbers.js";

export const about = (name) => get(experiment(name));

/** The dimensions of a box: {index, name, label with its unit, low, high, span}. */
export const sidesOf = ({ low, high, names, units }) => low.map((from, index) => ({
  index, name: names[index], label: units?.[index]?.trim() ? `${names[index]} (${units[index]})` : names[index],
  low: from, high: high[index], span: high[index] - from,
}));

export const policyOf = ({ policy, settings }) => policy ?? `${settings.partition.kind} × ${settings.learner.kind}`;

/** The part of the contexts that a bin is for, by the edges that are its own. */
export function binInWords(sides, { low, high }) {
  const parts = sides.map((side, k) => {
    const [from, to] = [low[k] > side.low, high[k] < side.high];
    const [a, b] = [within(low[k], side.span), within(high[k], side.span)];
    if (from && to) return `${side.name} ${a} to ${b}`;
    if (from) return `${side.name} from ${a}`;
    return to ? `${side.name} under ${b}` : null;
  });
  return parts.filter(Boolean).join(", ") || "all contexts";
}

const MARKS = { serious: "■", warning: "▲", note: "●", good: "✓", archived: "–", learning: "○", paused: "❚❚" };

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
export function meansOf({ payoff: { beginning, lately } }) {
  if (!lately) return ["–", "no payoff yet"];
  const shown = ({ mean, error }) => plusMinus(mean, error);
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
