// Viridis: even steps for every eye, in grey, too.

const VIRIDIS = [[68, 1, 84], [72, 36, 117], [65, 68, 135], [53, 95, 141], [42, 120, 142], [33, 145, 140],
  [34, 168, 132], [68, 191, 112], [122, 209, 81], [189, 223, 38], [253, 231, 37]];

/** The colour of a part from 0 to 1. */
export function viridis(part) {
  const place = Math.min(Math.max(part, 0), 1) * (VIRIDIS.length - 1);
  const k = Math.min(Math.floor(place), VIRIDIS.length - 2), t = place - k;
  const [r, g, b] = VIRIDIS[k].map((one, i) => Math.round(one + t * (VIRIDIS[k + 1][i] - one)));
  return `rgb(${r} ${g} ${b})`;
}

/** From values to parts: even, or by powers where the largest is fifty times the smallest. */
export function shade(values, counts) {
  const known = values.filter(Number.isFinite);
  if (!known.length) return null;
  let low = known.reduce((a, b) => Math.min(a, b)), high = known.reduce((a, b) => Math.max(a, b));
  const powers = counts && high > 50 * Math.max(low, 1);
  const put = powers ? (v) => Math.log(Math.max(v, 1)) : (v) => v;
  const [a, b] = [put(low), put(high)];
  return { low, high, powers, part: (v) => (b > a ? (put(v) - a) / (b - a) : 0.5) };
}

/** The colour of a theme's name, as the stylesheet has it. */
export const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
