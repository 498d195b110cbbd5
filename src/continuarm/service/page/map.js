// The bins as a map, on a canvas: ten thousand of them move smoothly. One context: a strip.

import { besides, scale, short, sized } from "./charts.js";
import { shade, themed, viridis } from "./colours.js";
import { h, say } from "./dom.js";
import { tick, ticks } from "./numbers.js";

const EDGE = { top: 6, right: 8, bottom: 42 };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/**
 * bins: those that are shown, with low, high, frozen; value: (bin) => number or null.
 * axes: one or two {index, label, low, high} of the context; none: one bin for all.
 * noun: what they are, if not bins. words: (bin) => what is said of it; chosen: (bin) => called when it is. focused: who was there stays.
 */
export function binMap({ bins, axes, value, counts, words, chosen, selected, focused, noun = "bins" }) {
  const flat = axes.length < 2;
  const height = flat ? 150 : 400;
  const values = bins.map(value);
  const shades = shade(values, counts);
  const fills = values.map((v) => (Number.isFinite(v) && shades ? viridis(shades.part(v)) : null));
  const area = axes.map(({ low, high }) => [low, high]);
  const state = { at: bins.findIndex((bin) => bin.id === selected), hover: -1, boxes: [] };
  let ground, above;

  const room = sized("map", (own, width) => {
    const up = flat ? [] : ticks(...area[1], 5);
    const frame = { left: flat ? 12 : besides(up, up[1] - up[0] || 1), right: width - EDGE.right, top: EDGE.top,
      bottom: height - EDGE.bottom };
    const toX = axes[0] ? scale(area[0], [frame.left, frame.right]) : null;
    const toY = flat ? null : scale(area[1], [frame.bottom, frame.top]);
    state.boxes = bins.map((bin) => boxOf(bin, axes, toX, toY, frame));
    ground = canvas(width, height);
    above = canvas(width, height);
    Object.assign(above.canvas, { tabIndex: 0 });
    above.canvas.setAttribute("role", "application");
    above.canvas.setAttribute("aria-roledescription", `map of ${noun}`);
    above.canvas.setAttribute("aria-label",
      `${bins.length} ${noun}; arrow keys move, Enter chooses. All are in the table below.`);
    paint(ground, state.boxes, bins, fills, frame);
    drawAxes(ground, axes, toX, toY, frame);
    listen(above.canvas);
    const stay = focused || own.contains(document.activeElement);
    focused = false;
    own.replaceChildren(ground.canvas, above.canvas, readout);
    if (stay) above.canvas.focus({ preventScroll: true });
    mark();
  });
  const readout = h("div.readout", { hidden: true, "aria-hidden": "true" });

  function mark() {
    if (!above) return;
    above.clearRect(0, 0, above.canvas.width, above.canvas.height);
    for (const [k, colour, wide] of [[state.hover, "--ink", 1.5], [state.at, "--ink", 3]]) {
      if (k < 0 || !state.boxes[k]) continue;
      const [x, y, w, t] = state.boxes[k];
      above.strokeStyle = themed("--card");
      above.lineWidth = wide + 2;
      above.strokeRect(x, y, w, t);
      above.strokeStyle = themed(colour);
      above.lineWidth = wide;
      above.strokeRect(x, y, w, t);
    }
  }

  function listen(target) {
    const found = (event) => {
      const box = target.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      return state.boxes.findIndex(([a, b, w, t]) => x >= a && x <= a + w && y >= b && y <= b + t);
    };
    target.addEventListener("pointermove", (event) => {
      const k = found(event);
      if (k !== state.hover) {
        state.hover = k;
        mark();
      }
      show(k, target);
    });
    target.addEventListener("pointerleave", () => {
      state.hover = -1;
      mark();
      show(-1, target);
    });
    target.addEventListener("click", (event) => choose(found(event)));
    target.addEventListener("keydown", (event) => {
      const way = ARROWS[event.key];
      if (way) {
        event.preventDefault();
        move(way);
      } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose(state.at);
      }
    });
  }

  function show(k, target) {
    readout.hidden = k < 0;
    if (k < 0) return;
    readout.replaceChildren(...words(bins[k]).map((one) => h("div", one)));
    const [x, y, w] = state.boxes[k];
    const left = Math.min(Math.max(x + w / 2 + 8, 0), target.clientWidth - readout.offsetWidth);
    readout.style.transform = `translate(${Math.max(left, 0)}px, ${Math.max(y, 0)}px)`;
  }

  function move(way) {
    const from = Math.max(state.at, 0);
    state.at = state.at < 0 ? 0 : neighbour(state.boxes, from, way);
    mark();
    say(words(bins[state.at]).join(", "));
  }

  function choose(k) {
    if (k < 0) return;
    state.at = k;
    mark();
    chosen(bins[k]);
  }

  return { element: room, shades };
}

function canvas(width, height) {
  const dots = window.devicePixelRatio || 1;
  const own = h("canvas", { width: Math.round(width * dots), height: Math.round(height * dots) });
  Object.assign(own.style, { width: `${width}px`, height: `${height}px` });
  const context = own.getContext("2d");
  context.scale(dots, dots);
  return context;
}

function boxOf(bin, axes, toX, toY, { left, right, top, bottom }) {
  const [x, to] = toX ? [toX(bin.low[axes[0].index]), toX(bin.high[axes[0].index])] : [left, right];
  const [y, until] = toY ? [toY(bin.high[axes[1].index]), toY(bin.low[axes[1].index])] : [top, bottom];
  return [x, y, to - x, until - y];
}

function paint(context, boxes, bins, fills, { left, right, top, bottom }) {
  const [none, unknown, gap] = [themed("--none"), themed("--unknown"), themed("--card")];
  context.fillStyle = none;
  context.fillRect(left, top, right - left, bottom - top);
  boxes.forEach(([x, y, w, t], k) => {
    const [gapX, gapY] = [w > 4 ? 0.5 : 0, t > 4 ? 0.5 : 0];
    context.fillStyle = gap;
    if (gapX || gapY) context.fillRect(x, y, w, t);
    context.fillStyle = fills[k] ?? unknown;
    context.fillRect(x + gapX, y + gapY, Math.max(w - 2 * gapX, 0.5), Math.max(t - 2 * gapY, 0.5));
    if (bins[k].frozen) hatch(context, x, y, w, t);
  });
}

/** Frozen bins are hatched: colours are taken. */
function hatch(context, x, y, w, t) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, t);
  context.clip();
  for (const [colour, wide] of [["#000", 3], ["#fff", 1.2]]) {
    context.strokeStyle = colour;
    context.lineWidth = wide;
    context.beginPath();
    for (let at = -t; at < w; at += 12) {
      context.moveTo(x + at, y + t);
      context.lineTo(x + at + t, y);
    }
    context.stroke();
  }
  context.restore();
}

function drawAxes(context, axes, toX, toY, { left, right, top, bottom }) {
  context.fillStyle = themed("--muted");
  context.font = `12px ${themed("--font")}`;
  context.textAlign = "center";
  if (!axes.length) context.fillText("no context: one bin for all", (left + right) / 2, bottom + 18);
  if (axes[0]) {
    const marks = ticks(axes[0].low, axes[0].high, Math.max(Math.floor((right - left) / 90), 2));
    marks.forEach((v) => context.fillText(tick(v, marks[1] - marks[0] || 1),
      Math.min(Math.max(toX(v), left + 10), right - 14), bottom + 16));
    context.fillText(short(axes[0].label, (right - left) / 7), (left + right) / 2, bottom + 35);
  }
  if (axes[1]) {
    const marks = ticks(axes[1].low, axes[1].high, 5);
    context.textAlign = "right";
    marks.forEach((v) => context.fillText(tick(v, marks[1] - marks[0] || 1), left - 7,
      Math.min(Math.max(toY(v) + 4, top + 10), bottom)));
    context.save();
    context.translate(13, (top + bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(short(axes[1].label, (bottom - top) / 7), 0, 0);
    context.restore();
  }
}

/** The bin next to one: across its edge, or the nearest that lies that way. */
function neighbour(boxes, from, [right, up]) {
  const [x, y, w, t] = boxes[from];
  const [cx, cy] = [x + w / 2, y + t / 2];
  const [px, py] = [cx + right * (w / 2 + 1), cy - up * (t / 2 + 1)];
  const beside = boxes.findIndex(([a, b, u, v], k) => k !== from && px >= a && px <= a + u && py >= b && py <= b + v);
  if (beside >= 0) return beside;
  let best = from, least = Infinity;
  boxes.forEach(([a, b, u, v], k) => {
    const [dx, dy] = [a + u / 2 - cx, b + v / 2 - cy];
    const along = right * dx - up * dy, off = Math.abs(right ? dy : dx);
    if (k !== from && along > 0.5 && along + 2 * off < least) [best, least] = [k, along + 2 * off];
  });
  return best;
}

/** What the colours mean. */
export function colourBar(shades, meaning, text, noun = "bin") {
  if (!shades) return h("p.note", `${meaning}: not known of any ${noun} yet`);
  const bar = h("canvas.bar", { width: 256, height: 10, role: "img",
    "aria-label": `${meaning}, from ${text(shades.low)} to ${text(shades.high)}` });
  const context = bar.getContext("2d");
  for (let k = 0; k < 256; k += 1) {
    context.fillStyle = viridis(shades.high > shades.low ? k / 255 : 0.5);
    context.fillRect(k, 0, 1, 10);
  }
  return h("div.colours", h("span", meaning + (shades.powers ? ", logarithmic" : "")),
    h("span.ends", h("span", text(shades.low)), bar, h("span", text(shades.high))));
}
