// The map of bins, the table behind it, and what one bin has learned.

import { binInWords } from "./about.js";
import { experiment, get, query, until } from "./api.js";
import { showBin } from "./bin.js";
import { colourBar, binMap } from "./map.js";
import { choice, empty, fresh, h } from "./dom.js";
import { count, plain, plusMinus } from "./numbers.js";

const PAGE = 25; // rows of the table at once
const REFRESH = 5000; // milliseconds, and
const SELDOM = 20; // times as long as it takes
const AT_ONCE = 2000; // bins in one answer

export async function showBins(room, known) {
  const { name, context, decision } = known;
  const state = { bins: [], shown: [], held: [], colour: "visits", selected: null, page: 0, sort: "id" };
  const colours = [{ key: "visits", name: "visits", counts: true, of: (bin) => bin.payoffs, text: count },
    { key: "payoff", name: `expected ${known.payoff.name}`, of: (bin) => bin.expected,
      text: (v) => known.payoff.text(plain(v)) },
    ...decision.map((side) => ({ key: `best ${side.name}`, name: `best ${side.label}`,
      of: (bin) => bin.best[side.name], text: (v) => side.text(v) }))];
  const controls = h("div.choices"), holding = h("div.fields"), picture = h("div"), listing = h("div");
  const detail = h("section.card", { "aria-label": "The bin that was chosen", "aria-live": "polite" });
  const figure = h("figure", h("figcaption", h("strong", "Bins"), h("span")), controls, holding, picture, listing);
  const colour = () => colours.find((one) => one.key === state.colour);

  async function load() {
    const began = performance.now();
    state.bins = await allBins(name, (first) => {
      if (state.bins.length) return;
      state.bins = first;
      begin();
    });
    state.took = performance.now() - began;
  }

  function begin() {
    if (!state.shown.length) [state.shown, state.held] = chosenSides(context, state.bins);
    for (const own of controls.querySelectorAll("select[data-axis]")) own.value = String(state.shown[own.dataset.axis] ?? "");
    drawHeld();
    draw();
  }

  function draw() {
    const visible = state.bins.filter((bin) => holds(bin, context, state));
    const axes = state.shown.map((k) => context[k]);
    const unknown = state.bins.length - visible.length;
    figure.querySelector("figcaption span").textContent = `${count(visible.length)} shown`
      + (unknown ? ` of ${count(state.bins.length)}: those that hold the values below` : "")
      + (visible.some((bin) => bin.frozen) ? "; hatched: frozen" : "");
    if (!visible.length) {
      picture.replaceChildren(empty("No bin was visited here yet.",
        "A bin is made when its first payoff is learned."));
    } else {
      const map = binMap({ bins: visible, axes, value: colour().of, counts: colour().counts, selected: state.selected,
        focused: picture.contains(document.activeElement),
        words: (bin) => words(bin, context, decision, colour()), chosen: choose });
      picture.replaceChildren(map.element, colourBar(map.shades, meaning(colour()), colour().text),
        handedDown(state.bins, known) ?? "");
    }
    drawTable(visible);
  }

  function drawTable(visible) {
    const open = listing.querySelector("details")?.open ?? false;
    const details = h("details.data", { open }, h("summary", "As a table"));
    const fill = () => {
      if (details.open) details.append(binsTable(visible, known, state, choose, () => drawTable(visible)));
    };
    details.addEventListener("toggle", () => (details.open ? details.childElementCount === 1 && fill() : null));
    if (open) fill();
    listing.replaceChildren(details);
  }

  async function choose(bin) {
    state.selected = bin.id;
    await showBin(detail, known, bin, reload);
    if (matchMedia("(max-width: 860px)").matches) detail.scrollIntoView({ block: "nearest" });
  }

  async function reload(frozen) {
    const chosen = () => state.bins.find((bin) => bin.id === state.selected);
    await until(async () => { await load(); return chosen()?.frozen === frozen; });
    draw();
    if (chosen()) await showBin(detail, known, chosen(), reload);
  }

  controls.append(...choices(context, colours, state, () => { drawHeld(); draw(); }));
  const drawHeld = () => holding.replaceChildren(...heldFields(context, state, draw));
  detail.replaceChildren(empty("No bin is chosen.",
    "Choose one in the map or in the table to see what it has learned."));
  room.replaceChildren(h("div.two.even", figure, detail));
  await load();
  begin();
  let next = performance.now() + REFRESH;
  known.live.follow(async () => {
    if (performance.now() < next || listing.contains(document.activeElement)) return;
    await load();
    draw();
    next = performance.now() + REFRESH + SELDOM * state.took;
  }, REFRESH);
}

/** All bins, page by page; the first are shown at once. */
async function allBins(name, first) {
  const found = [];
  for (let after = 0; after !== null;) {
    const { bins, next } = await get(experiment(name, `/bins${query({ after, most: AT_ONCE })}`));
    found.push(...bins);
    if (!after && next !== null) first(found);
    after = next;
  }
  return found;
}

const meaning = ({ key, name }) => ({ visits: "payoffs of the bin",
  payoff: `${name} of its best decision` }[key] ?? `${name}, in the middle of the bin`);

/** Why the payoffs of bins are fewer than all that were told. */
function handedDown(bins, { found: { counts } }) {
  const own = bins.reduce((sum, bin) => sum + bin.payoffs, 0), rest = counts.payoffs - own;
  if (!(rest > 0) || !bins.some((bin) => bin.level)) return null;
  return h("p.note.apart", `These bins count ${count(own)} payoffs, those since they were cut out. The other ${count(rest)} `
    + `came before: each bin began with what they taught.${bins.some((bin) => bin.frozen) ? " A frozen bin counts payoffs and learns none of them." : ""}`);
}

/** The two contexts along which most bins are cut, and where the others are held. */
function chosenSides(context, bins) {
  const cuts = context.map((side) => new Set(bins.map((bin) => bin.low[side.index])).size);
  const order = context.map((_, k) => k).sort((a, b) => cuts[b] - cuts[a] || a - b).slice(0, 2).sort((a, b) => a - b);
  return [order, context.map((side) => (side.low + side.high) / 2)];
}

const holds = (bin, context, { shown, held }) => context.every((side, k) => shown.includes(k)
  || (bin.low[k] <= held[k] && (held[k] < bin.high[k] || (held[k] === bin.high[k] && held[k] === side.high))));

function words(bin, context, decision, { name, key, of, text }) {
  const best = decision.map((side) => `${side.name} ${side.text(bin.best[side.name])}`).join(", ");
  const more = key === "payoff" ? [`${name} ${plusMinus(bin.expected, bin.expected_error)}`] : [];
  return [`Bin ${bin.id}${bin.frozen ? ", frozen" : ""}`, binInWords(context, bin), `${count(bin.payoffs)} payoffs`,
    ...more, `best: ${best}`];
}

function choices(context, colours, state, changed) {
  const pick = (text, options, value, chosen, more) => choice(text, options, value,
    (key) => { chosen(key); changed(); }, more);
  const found = [pick("Colour", colours.map((one) => [one.key, one.name]), state.colour,
    (key) => { state.colour = key; })];
  if (context.length < 3) return found;
  const sides = context.map((side, k) => [String(k), side.name]);
  const put = (place) => (key) => {
    const k = Number(key);
    if (state.shown[1 - place] === k) state.shown[1 - place] = state.shown[place];
    state.shown[place] = k;
    for (const own of document.querySelectorAll("select[data-axis]")) own.value = String(state.shown[own.dataset.axis]);
  };
  return [...found, pick("Across", sides, "0", put(0), { "data-axis": "0" }),
    pick("Upwards", sides, "1", put(1), { "data-axis": "1" })];
}

/** Where the others are held: those along which any bin is cut; the rest change nothing. */
function heldFields(context, state, changed) {
  return context.filter((side, k) => !state.shown.includes(k)
    && state.bins.some((bin) => bin.low[k] > side.low || bin.high[k] < side.high)).map((side) => {
    const id = fresh("held");
    const shown = h("output", { for: id }, side.text(state.held[side.index]));
    const slide = h("input", { id, type: "range", min: side.low, max: side.high, step: "any",
      value: String(state.held[side.index]),
      oninput: () => {
        state.held[side.index] = Number(slide.value);
        shown.textContent = side.text(state.held[side.index]);
        changed();
      } });
    return h("div.field", h("label", { for: id }, `${side.name}: `, shown), slide);
  });
}

function binsTable(visible, { context, decision, payoff }, state, choose, again) {
  const by = { id: (a, b) => a.id - b.id, payoffs: (a, b) => b.payoffs - a.payoffs };
  const rows = [...visible].sort(by[state.sort]);
  const pages = Math.max(Math.ceil(rows.length / PAGE), 1);
  state.page = Math.min(state.page, pages - 1);
  const sort = choice("Sorted by", [["id", "number"], ["payoffs", "payoffs"]], state.sort,
    (key) => { state.sort = key; again(); });
  const turn = (by_) => h("button", { type: "button", disabled: state.page + by_ < 0 || state.page + by_ >= pages,
    onclick: () => { state.page += by_; again(); } }, by_ < 0 ? "Previous" : "Next");
  const head = ["Bin", "Contexts", "Payoffs", `Expected ${payoff.label}`, ...decision.map((side) => `Best ${side.label}`), ""];
  const body = rows.slice(PAGE * state.page, PAGE * (state.page + 1)).map((bin) => h("tr",
    { "aria-selected": bin.id === state.selected ? "true" : null },
    h("td", h("button.link", { type: "button", onclick: () => choose(bin) }, String(bin.id))),
    h("td.long", binInWords(context, bin)), h("td.number", count(bin.payoffs)),
      h("td.number", plusMinus(bin.expected, bin.expected_error)),
    decision.map((side) => h("td.number", side.cell(bin.best[side.name]))),
      h("td", bin.frozen ? "frozen" : "")));
  return h("div", h("div.choices", sort, turn(-1), h("span.note", `page ${state.page + 1} of ${pages}`), turn(1)),
    h("div.scrolls", { tabindex: "0", role: "region", "aria-label": "Bins" },
      h("table", h("caption", { class: "unseen" }, "Bins"),
      h("thead", h("tr", head.map((text, k) => h(k > 1 ? "th.number" : "th", { scope: "col" },
        text || h("span.unseen", "state"))))), h("tbody", body))));
}
