// What was paid over time, ours and the incumbent's, with ± 2 standard errors.

import { experiment, get } from "./api.js";
import { figure, lines } from "./charts.js";
import { empty } from "./dom.js";
import { count, plain, plusMinus } from "./numbers.js";

const ENOUGH = 30; // payoffs in a point of the chart, and
const MOST = 24; // points
const LONG = 1 / 16; // of all payoffs without one of a kind, such as ours during a pause: a gap, if also
const USUAL = 5; // times as long as is usual between two of them
const WHOSE = [["ours", "ours", "our decisions"], ["incumbent", "theirs", "the incumbent's"]];

export async function historyFigure({ name, payoff }) {
  const { buckets } = await get(experiment(name, "/history"));
  if (!buckets.length) return empty("No payoff was told yet.",
    "What decisions pay over time is shown here as soon as payoffs come.");
  const told = buckets.reduce((most, one) => Math.max(most, one.last), 0);
  const series = WHOSE.map(([whose, kind, text]) => ({ kind, name: text, dots: true,
    points: pointsOf(buckets.filter((b) => b.whose === whose), told) }))
    .filter(({ points }) => points.length);
  const chart = lines({
    label: `Mean ${payoff.label} over ${count(told)} payoffs`, series, height: 280,
    x: { name: "payoffs", low: 0, high: told }, y: { name: `mean ${payoff.label}` },
    read: (k) => series.flatMap((one) => {
      const { from, to, text } = nearest(one.points, series[0].points[k].x);
      return [`${one.name}: ${payoff.text(text)}`, `payoffs ${count(from)} to ${count(to)}`];
    }),
  });
  return figure({
    title: `Mean ${payoff.name} over time`, note: "bands: ± 2 standard errors", chart,
      legend: series.map(({ name: text, kind }) => ({ name: text, kind })),
    data: () => ({ columns: [{ name: "Whose" }, { name: "From payoff", number: true }, { name: "To", number: true },
      { name: "Payoffs", number: true },
      { name: "Mean", number: true }, { name: "Standard error", number: true }],
    rows: buckets.map((b) => [b.whose, count(b.first), count(b.last), count(b.payoffs), plain(b.mean),
      plain(b.error)]) }),
  });
}

const point = ({ first, last, mean, error }) => ({
  x: (first + last) / 2, from: first, to: last, y: mean, low: error === null ? undefined : mean - 2 * error,
    high: error === null ? undefined : mean + 2 * error,
  text: plusMinus(mean, error),
});

/** The point at an x, or beside it: ours and the incumbent's are pooled each by themselves. */
const nearest = (points, x) => points.filter(({ y }) => y !== null)
  .reduce((best, one) => (Math.abs(one.x - x) < Math.abs(best.x - x) ? one : best));

/** Points with gaps between them where for long there was no payoff of this kind. */
function pointsOf(buckets, told) {
  const all = buckets.reduce((sum, one) => sum + one.payoffs, 0);
  const long = Math.max(LONG, USUAL / all) * told, parts = [];
  buckets.forEach((one, k) => {
    if (k && one.first - buckets[k - 1].last <= long) parts.at(-1).push(one);
    else parts.push([one]);
  });
  return parts.flatMap((part, k) => [...(k ? [{ x: (parts[k - 1].at(-1).last + part[0].first) / 2, y: null }] : []),
    ...pooled(part, Math.max(ENOUGH, all / MOST)).map(point)]);
}

/** Neighbours together, until each has enough payoffs. */
function pooled(buckets, least) {
  const found = [];
  for (const one of buckets) {
    if (found.length && found.at(-1).payoffs < least) found.push(together(found.pop(), one));
    else found.push(one);
  }
  if (found.length > 1 && found.at(-1).payoffs < least) {
    const last = found.pop();
    found.push(together(found.pop(), last));
  }
  return found;
}

function together(a, b) {
  const n = a.payoffs + b.payoffs, mean = (a.payoffs * a.mean + b.payoffs * b.mean) / n;
  const squares = [a, b].reduce((sum, { payoffs: m, mean: own,
    error }) => sum + (error ?? 0) ** 2 * m * (m - 1) + m * (own - mean) ** 2, 0);
  return { ...a, last: b.last, payoffs: n, mean, error: Math.sqrt(squares / (n * (n - 1))) };
}
