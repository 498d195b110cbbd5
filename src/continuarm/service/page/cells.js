// The map of cells, for a policy with one bin: parts of one or two contexts that one chooses.

import { binInWords } from "./about.js";
import { experiment, get, query } from "./api.js";
import { showCell } from "./cell.js";
import { choice, empty, h, table } from "./dom.js";
import { slider } from "./learned.js";
import { colourBar, binMap } from "./map.js";
import { plain, plusMinus } from "./numbers.js";

const REFRESH = 5000; // milliseconds, and
const SELDOM = 20; // times as long as it takes
const PARTS = ["4", "8", "12", "16"];
const NONE = ""; // only one context is chosen

export async function showCells(room, known) {
  const { name, context, decision, payoff } = known;
  const state = { along: null, parts: "8", colour: "0", cells: [], selected: null, asked: 0,
    held: context.map((side) => (side.low + side.high) / 2) };
  const colours = [...decision.map((side) => ({ name: `best ${side.label}`, of: (cell) => cell.best[side.name],
    text: side.text })),
    { name: `expected ${payoff.name}`, of: (cell) => cell.expected, text: (v) => payoff.text(plain(v)) },
    { name: "how much more than today", of: (cell) => cell.gain, text: (v) => payoff.text(plain(v, "exceptZero")) }];
  const controls = h("div.choices"), holding = h("div.fields"), picture = h("div"), listing = h("div");
  const held = h("details.held", { open: context.length < 5 }, h("summary", "Where the other contexts are held"), holding);
  const detail = h("section.card", { "aria-label": "The segment that was chosen", "aria-live": "polite" });
  const figure = h("figure", h("figcaption", h("strong", "Segments"), h("span")), controls, held, picture, listing);
  const chosen = () => state.cells.find((cell) => cell.id === state.selected);

  async function load() {
    const mine = ++state.asked, began = performance.now();
    const found = await get(experiment(name, `/cells?${wanted(state, context)}`));
    if (mine !== state.asked) return;
    state.took = performance.now() - began;
    if (!state.along) {
      state.along = found.along.map((one) => context.findIndex((side) => side.name === one));
      choices();
      hold();
    }
    state.cells = found.cells.map((cell, id) => ({ ...cell, id, ...edges(cell, context) }));
    draw();
    if (chosen()) showCell(detail, known, chosen(), again);
  }

  async function again() {
    await known.refresh();
    await load();
  }

  function draw() {
    const { of, text, name: meaning } = colours[Number(state.colour)];
    const axes = state.along.map((k) => context[k]);
    figure.querySelector("figcaption span").textContent = "what is known in the middle of each"
      + (state.cells.some((cell) => cell.frozen) ? "; hatched: frozen" : "");
    const map = binMap({ bins: state.cells, axes, value: of, counts: false, selected: state.selected,
      focused: picture.contains(document.activeElement), noun: "segments", words: (cell) => words(cell, known), chosen: choose });
    picture.replaceChildren(map.element, colourBar(map.shades, meaning, text, "segment"));
    drawTable();
  }

  function drawTable() {
    const open = listing.querySelector("details")?.open ?? false;
    const details = h("details.data", { open }, h("summary", "As a table"));
    const fill = () => details.open && details.childElementCount === 1 && details.append(cellsTable(state.cells, known, choose));
    details.addEventListener("toggle", fill);
    fill();
    listing.replaceChildren(details);
  }

  function choose(cell) {
    state.selected = cell.id;
    showCell(detail, known, cell, again);
    if (matchMedia("(max-width: 860px)").matches) detail.scrollIntoView({ block: "nearest" });
  }

  function forget() {
    state.selected = null;
    detail.replaceChildren(empty("No segment is chosen.",
      "Choose one in the map or in the table to see what is known of it, and to freeze it."));
  }

  function choices() {
    const pick = (text, options, value, set) => choice(text, options, value, set);
    const cut = () => { forget(); hold(); load(); };
    const sides = context.map((side) => [String(side.index), side.label]);
    const put = (place) => (key) => {
      const [first, second] = state.along, now = key === NONE ? null : Number(key);
      if (place === 0) state.along = second === undefined ? [now] : [now, second === now ? first : second];
      else state.along = now === null ? [first] : [first === now ? second ?? other(first) : first, now];
      choices();
      cut();
    };
    const other = (k) => context.findIndex((side) => side.index !== k);
    controls.replaceChildren(
      pick("Colour", colours.map((one, k) => [String(k), one.name]), state.colour, (key) => { state.colour = key; draw(); }),
      ...(context.length > 1 ? [pick("Across", sides, String(state.along[0]), put(0)),
        pick("Upwards", [...sides, [NONE, "nothing"]], String(state.along[1] ?? NONE), put(1))] : []),
      pick("Parts", PARTS.map((one) => [one, one]), state.parts, (key) => { state.parts = key; cut(); }));
  }

  function hold() {
    const others = context.filter((side) => !state.along.includes(side.index));
    holding.replaceChildren(...others.map((side) => slider(side, state, load)));
    held.hidden = !others.length;
  }

  forget();
  held.hidden = true;
  room.replaceChildren(h("div.two.even", figure, detail));
  await load();
  let next = performance.now() + REFRESH;
  known.live.follow(async () => {
    if (performance.now() < next || listing.contains(document.activeElement)) return;
    await load();
    next = performance.now() + REFRESH + SELDOM * state.took;
  }, REFRESH);
}

/** What is asked for: before anything was chosen, the columns that the server chooses. */
function wanted(state, context) {
  const found = new URLSearchParams(state.along?.map((k) => ["along", context[k].name]) ?? []);
  found.append("parts", state.parts);
  context.forEach((side, k) => state.along && !state.along.includes(k) && found.append(side.name, String(state.held[k])));
  return found;
}

/** Its box: as wide as the contexts that it is not a part of. */
const edges = ({ segment }, context) => ({ low: context.map((side) => segment[side.name]?.[0] ?? side.low),
  high: context.map((side) => segment[side.name]?.[1] ?? side.high) });

function words(cell, { context, decision, payoff }) {
  const best = decision.map((side) => `${side.name} ${side.text(cell.best[side.name])}`).join(", ");
  return [`${binInWords(context, cell)}${cell.frozen ? ", frozen" : ""}`, `best: ${best}`,
    cell.expected === null ? "payoffs do not show yet what it pays"
      : `expected ${payoff.text(plusMinus(cell.expected, cell.expected_error))}`];
}

function cellsTable(cells, { context, decision, payoff }, choose) {
  const columns = [{ name: "Contexts" }, ...decision.map((side) => ({ name: `Best ${side.label}`, number: true })),
    { name: `Expected ${payoff.label}`, number: true }, { name: "More than today", number: true }, { name: "State" }];
  return table("Segments", columns, cells.map((cell) => [
    h("button.link", { type: "button", onclick: () => choose(cell) }, binInWords(context, cell)),
    ...decision.map((side) => side.cell(cell.best[side.name])),
    plusMinus(cell.expected, cell.expected_error), plusMinus(cell.gain, cell.gain_error),
    cell.frozen ? "frozen" : ""]), { unseen: true });
}
