// The payoff expected for a context over each coordinate of the decision.

import { experiment, get, query } from "./api.js";
import { figure, lines } from "./charts.js";
import { plain, plusMinus } from "./numbers.js";

export const KEYS = [{ name: "expected", kind: "ours" }, { name: "± 2 standard errors", kind: "ours", shape: "band" },
  { name: "beyond what was tried", kind: "beyond" },
  { name: "best known", kind: "ours", shape: "mark" }, { name: "today", kind: "theirs", shape: "mark" }];

export async function payoffFigures({ name, decision, payoff }, context) {
  const found = await Promise.all(decision.map((side) => get(experiment(name,
    `/payoff${query({ over: side.name, ...context })}`))));
  return found.flatMap((one, k) => (one.x.length ? [drawn(one, decision[k], payoff)] : []));
}

function drawn({ x, expected, error, tried, allowed, best, today }, side, payoff) {
  const points = x.map((at, k) => ({ x: at, y: expected[k], low: expected[k] - 2 * error[k],
    high: expected[k] + 2 * error[k] }));
  const inside = points.map((p, k) => (tried[k] ? p : { ...p, y: null }));
  const series = [{ kind: "beyond", name: "beyond what was tried", points },
    { kind: "ours", name: "expected", points: inside }];
  const text = (k) => payoff.text(plusMinus(expected[k], error[k]));
  const chart = lines({
    label: `Expected ${payoff.label} over ${side.label}; the best known is ${side.text(best)}`, series, height: 220,
    x: { name: side.label, low: side.low, high: side.high }, y: { name: payoff.label, ...room(points, tried) },
    marks: [{ x: best, kind: "ours" }, { x: today, kind: "theirs" }], // dashes above: both are seen if equal
    read: (k) => [`${side.name} ${side.text(x[k])}`, `expected ${text(k)}`, tried[k] ? "tried" : "not tried",
      ...(allowed[k] ? [] : ["not allowed by limits and guards"])],
  });
  return figure({
    title: side.label, chart,
    data: () => ({ columns: [{ name: side.label, number: true }, { name: `Expected ${payoff.label}`, number: true },
      { name: "Standard error", number: true }, { name: "Tried" }, { name: "Allowed" }],
      rows: x.map((at, k) => [side.cell(at), plain(expected[k]), plain(error[k]), tried[k] ? "yes" : "no",
        allowed[k] ? "yes" : "no"]) }),
  });
}

/** Far outside what was tried the band says nothing, and would hide the rest. */
function room(points, tried) {
  const near = points.filter((_, k) => tried[k]);
  if (!near.length) return {};
  const [low, high] = [Math.min(...near.map((p) => p.low)), Math.max(...near.map((p) => p.high))];
  const wide = Math.max(high - low, 1e-9 * Math.abs(high), 1e-300);
  return { low: Math.max(Math.min(...points.map((p) => p.low)), low - wide), high: high + 0.1 * wide };
}
