// Charts of lines and bands, as SVG; each has a table behind it.

import { fresh, h, s, table } from "./dom.js";
import { tick, ticks } from "./numbers.js";

const EDGE = { top: 10, right: 14, bottom: 40 };

/** Room for a name and for marks upwards, the longest of which has so many letters. */
export const besides = (marks, step) => 32 + 7 * Math.max(...marks.map((v) => tick(v, step).length), 2);

/** A chart with its title, its legend and the table behind it: {columns, rows}, made when opened. */
export function figure({ title, note, chart, legend, data }) {
  const id = fresh("figure");
  const details = h("details.data", h("summary", "As a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) {
      const { columns, rows } = data();
      details.append(table(title, columns, rows, { unseen: true }));
    }
  });
  return h("figure", { "aria-labelledby": id }, h("figcaption", h("strong", { id }, title),
    note ? h("span", note) : null),
    legend?.length ? legendOf(legend) : null, chart, details);
}

/** What the lines of one chart, or of several, mean. */
export const legendOf = (keys) => h("ul.legend", keys.map(key));

/** Draw figures again: a table that was open stays open. */
export function redraw(room, figures) {
  const open = [...room.querySelectorAll("details.data")].map((details) => details.open);
  room.replaceChildren(...figures);
  room.querySelectorAll("details.data").forEach((details, k) => { details.open = open[k] ?? false; });
}

function key({ name, kind, shape = "line" }) {
  const drawn = {
    line: s("line", { x1: 1, x2: 21, y1: 6, y2: 6, class: `line ${kind}` }),
    band: s("rect", { x: 1, y: 1, width: 20, height: 10, class: `band ${kind}` }),
    mark: s("line", { x1: 11, x2: 11, y1: 0, y2: 12, class: `mark ${kind}` }),
  };
  return h("li", s("svg", { width: 22, height: 12, "aria-hidden": "true" }, drawn[shape]), name);
}

/** What draws itself again whenever its room changes. */
export function sized(className, draw) {
  const room = h(`div.${className}`);
  let width = 0;
  const look = new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now > 0 && now !== width) {
      width = now;
      draw(room, width);
    }
  });
  look.observe(room);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const again = () => {
    if (!room.isConnected) scheme.removeEventListener("change", again);
    else if (width) draw(room, width); // a canvas does not follow the stylesheet
  };
  scheme.addEventListener("change", again);
  return room;
}

/**
 * Lines over one axis.
 * x, y: {name, low, high}; without ends, those of the points.
 * series: [{name, kind, points: [{x, y, low, high}], dots}]; a point without y is a gap.
 * marks: [{x, name, kind}], upright lines.
 * read: (k) => the lines of the readout at the k-th point of the first series.
 */
export function lines({ label, x, y, series, marks = [], height = 240, read }) {
  const xs = ends(x, series.flatMap((one) => one.points.map((p) => p.x)));
  const ys = ends(y, series.flatMap((one) => one.points.flatMap((p) => (p.y === null ? [] : [p.y, p.low ?? p.y,
    p.high ?? p.y]))), 0.06);
  const drawing = sized("chart", (room, width) => {
    const right = width - EDGE.right, bottom = height - EDGE.bottom;
    const up = ticks(...ys, 5), left = besides(up, stepOf(up));
    const toX = scale(xs, [left, right]), toY = scale(ys, [bottom, EDGE.top]);
    const clip = fresh("clip");
    const inside = s("g", { "clip-path": `url(#${clip})` }, series.map((one) => drawn(one, toX, toY)),
      marks.map((m) => s("line", { x1: toX(m.x), x2: toX(m.x), y1: EDGE.top, y2: bottom, class: `mark ${m.kind}` })));
    const picture = s("svg", { width, height, role: "img", "aria-label": label },
      s("clipPath", { id: clip }, s("rect", { x: left, y: EDGE.top - 4, width: Math.max(right - left, 0),
        height: bottom - EDGE.top + 8 })),
      axes(x, y, xs, up, toX, toY, { left, right, bottom }), inside);
    room.replaceChildren(picture);
    if (read && series[0]?.points.length) addReadout(room, picture, series, toX, toY, read, bottom);
  });
  drawing.style.minHeight = `${height}px`; // nothing jumps when it is drawn
  return drawing;
}

function ends({ low, high }, values, margin = 0) {
  const known = values.filter(Number.isFinite);
  let from = low ?? (known.length ? known.reduce((a, b) => Math.min(a, b)) : 0);
  let to = high ?? (known.length ? known.reduce((a, b) => Math.max(a, b)) : 1);
  if (!(to > from)) [from, to] = [from - (Math.abs(from) || 1) / 2, to + (Math.abs(to) || 1) / 2];
  const more = margin * (to - from);
  return [low === undefined ? from - more : from, high === undefined ? to + more : to];
}

export const scale = ([a, b], [from, to]) => (value) => from + ((value - a) / (b - a)) * (to - from);

function drawn({ kind, points, dots, quiet }, toX, toY) {
  const isKnown = (p) => p.y !== null && p.y !== undefined;
  const known = points.filter(isKnown);
  const parts = rows(points, (p) => isKnown(p) && Number.isFinite(p.low) && Number.isFinite(p.high)).map((banded) => {
    const upper = banded.map((p) => `${toX(p.x)},${toY(p.high)}`),
      lower = banded.map((p) => `${toX(p.x)},${toY(p.low)}`);
    return s("polygon", { points: [...upper, ...lower.reverse()].join(" "), class: `band ${kind}` });
  });
  if (!quiet) parts.push(...rows(points, isKnown).map((joined) => s("polyline",
    { points: joined.map((p) => `${toX(p.x)},${toY(p.y)}`).join(" "), class: `line ${kind}` })));
  if (dots || known.length === 1) parts.push(...known.map((p) => s("circle",
    { cx: toX(p.x), cy: toY(p.y), r: 2.5, class: `dot ${kind}` })));
  return parts;
}

/** Points beside each other that hold, two and more: between others nothing is drawn. */
function rows(points, holds) {
  const found = [[]];
  for (const p of points) {
    if (holds(p)) found.at(-1).push(p);
    else if (found.at(-1).length) found.push([]);
  }
  return found.filter((row) => row.length > 1);
}

const stepOf = (marks) => (marks.length > 1 ? marks[1] - marks[0] : Math.abs(marks[0]) || 1);

function axes(x, y, xs, up, toX, toY, { left, right, bottom }) {
  const across = ticks(...xs, Math.max(Math.floor((right - left) / 70), 3));
  return s("g", { class: "axes" },
    up.map((v) => [s("line", { x1: left, x2: right, y1: toY(v), y2: toY(v), class: "grid" }),
      s("text", { x: left - 7, y: toY(v) + 4, "text-anchor": "end" }, tick(v, stepOf(up)))]),
    across.map((v) => s("text", { x: toX(v), y: bottom + 16, "text-anchor": anchor(toX(v), right) },
      tick(v, stepOf(across)))),
    s("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "base" }),
    s("text", { x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle", class: "name" },
      short(x.name, (right - left) / 7)),
    s("text", { transform: `translate(12 ${(EDGE.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle",
      class: "name" }, short(y.name, (bottom - EDGE.top) / 7)));
}

const anchor = (place, right) => (place > right - 12 ? "end" : "middle");

/** A long name, cut where its room ends. */
export const short = (text,
  letters) => (text.length <= letters ? text : `${text.slice(0, Math.max(Math.floor(letters) - 1, 1))}…`);

function addReadout(room, picture, series, toX, toY, read, bottom) {
  const { points } = series[0];
  const line = s("line", { y1: EDGE.top, y2: bottom, class: "cursor", visibility: "hidden" });
  const text = h("div.readout", { hidden: true, "aria-hidden": "true" });
  picture.append(line);
  room.append(text);
  picture.addEventListener("pointermove", (event) => {
    const at = event.clientX - picture.getBoundingClientRect().left;
    const far = (i) => (points[i].y === null ? Infinity : Math.abs(toX(points[i].x) - at));
    const k = points.reduce((best, _, i) => (far(i) < far(best) ? i : best), 0);
    const place = toX(points[k].x);
    line.setAttribute("x1", place);
    line.setAttribute("x2", place);
    line.setAttribute("visibility", "visible");
    text.replaceChildren(...read(k).map((one) => h("div", one)));
    text.hidden = false;
    const left = place + 12 + text.offsetWidth > room.clientWidth ? place - 12 - text.offsetWidth : place + 12;
    text.style.transform = `translate(${Math.max(left, 0)}px, ${EDGE.top}px)`;
  });
  picture.addEventListener("pointerleave", () => {
    text.hidden = true;
    line.setAttribute("visibility", "hidden");
  });
}
