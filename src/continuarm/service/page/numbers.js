// Numbers as people write them: as exact as matters, never more.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const count = (n) => (n === null || n === undefined ? "–" : whole.format(n));

/** A number with this many decimals, never -0. */
function fixed(value, decimals, sign = "auto") {
  const kept = Math.min(Math.max(decimals, 0), 12);
  const shown = Number(value.toFixed(kept)) + 0;
  return new Intl.NumberFormat("en-US", {
    minimumFractionDigits: kept, maximumFractionDigits: kept, signDisplay: sign,
  }).format(shown).replace("-", "−");
}

/** The decimals of values in steps, or with one ending, such as 2 of 0.05; null: any value is allowed. */
export function decimalsOf(spacing, ending) {
  const steps = [spacing, ending].filter((step) => step > 0).map(String);
  if (!steps.length || steps.some((step) => step.includes("e"))) return null;
  return Math.max(...steps.map((step) => (step.split(".")[1] ?? "").length));
}

/** A value of a box: with its decimals, or four digits of the box's width without trailing zeros. */
export function within(value, span, known = null, trim = true) {
  if (value === null || value === undefined) return "–";
  if (known !== null && Math.abs(value) < 1e15 && Math.abs(value - Number(value.toFixed(known))) < 1e-9) return fixed(value, known);
  const decimals = span > 0 ? Math.max(3 - Math.floor(Math.log10(span)), 0) : 4;
  if (decimals > 12 || Math.abs(value) >= 1e15) return plain(value);
  const text = fixed(value, decimals);
  return trim && text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

/** Four digits of numbers of this size, all with the same decimals; those far larger stand alone. */
export function like(value, size) {
  if (!(size > 0) || Math.abs(value) > 100 * size) return plain(value);
  const decimals = 3 - Math.floor(Math.log10(size));
  return decimals > 12 ? plain(value) : fixed(value, decimals);
}

/** Four digits. */
export function plain(value, sign = "auto") {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size >= 15 || size < -9) return value.toExponential(3).replace("-", "−");
  return fixed(value, 3 - size, sign);
}

/** An estimate ± two standard errors, as exact as these are. */
export function plusMinus(value, error) {
  if (value === null || value === undefined) return "–";
  if (!(error > 0) || !Number.isFinite(error)) return plain(value);
  const half = 2 * error, decimals = 1 - Math.floor(Math.log10(half));
  if (decimals > 9) return `${plain(value)} ± ${half.toExponential(1)}`;
  return `${fixed(value, decimals)} ± ${fixed(half, decimals)}`;
}

/** [low, estimate, high] as text; all with the decimals that the width deserves. */
export function interval([low, estimate, high], unit = "") {
  const width = high - low;
  const decimals = width > 0 ? Math.max(1 - Math.floor(Math.log10(width)), 0) : 3;
  const [a, b, c] = [low, estimate, high].map((value) => fixed(value, decimals, "exceptZero") + unit);
  return { estimate: b, range: `${a} to ${c}` };
}

/** Where an axis from low to high has its marks. */
export function ticks(low, high, about = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((one) => one >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let k = first; k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
  return found;
}

/** A mark of an axis with marks this far apart. */
export function tick(value, step) {
  if (Math.abs(value) >= 1e6) {
    return new Intl.NumberFormat("en-US", { notation: "compact",
      maximumFractionDigits: 2 }).format(value).replace("-", "−");
  }
  return fixed(value, Math.max(-Math.floor(Math.log10(step) + 1e-9), 0));
}

export const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");
