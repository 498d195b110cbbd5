// The learned decision along a context, with where payoffs put the best, and what is done today.

import { experiment, get, query } from "./api.js";
import { figure, legendOf, lines, redraw } from "./charts.js";
import { choice, empty, fresh, h } from "./dom.js";
import { plain, plusMinus } from "./numbers.js";

const KEYS = [{ name: "best known", kind: "ours" }, { name: "where payoffs put it, ± 2 standard errors", kind: "ours",
  shape: "band" }, { name: "today", kind: "theirs" }];

export async function showLearned(room, known) {
  const { name, context, decision } = known;
  if (!context.length) {
    room.replaceChildren(empty("There is no context.", "Its one decision is under “What would it decide?”."));
    return;
  }
  const state = { along: 0, held: context.map((side) => (side.low + side.high) / 2), asked: 0 };
  const holding = h("div.fields"), charts = h("div.charts");
  const pick = choice("Along", context.map((side) => [String(side.index), side.label]), "0",
    (key) => { state.along = Number(key); hold(); draw(); });

  async function draw() {
    const mine = ++state.asked;
    const held = Object.fromEntries(context.filter((_, k) => k !== state.along).map((side) => [side.name,
      state.held[side.index]]));
    const found = await get(experiment(name, `/curve${query({ along: context[state.along].name, ...held })}`));
    if (mine === state.asked) redraw(charts, decision.map((side) => drawn(found, context[state.along], side)));
  }

  function hold() {
    const others = context.filter((_, k) => k !== state.along);
    holding.replaceChildren(...others.map((side) => slider(side, state, draw)));
    held.hidden = !others.length;
  }

  const held = h("details.held", { open: context.length < 4 }, h("summary", "Where the other contexts are held"),
    holding);
  hold();
  room.replaceChildren(h("section.card", { "aria-label": "What it learned" },
    h("div.choices", pick), held, legendOf(KEYS), charts));
  await draw();
  known.live.follow(draw, 10_000);
}

/** A slider that holds one context; `changed` is called when it rests. */
export function slider(side, state, changed) {
  const id = fresh("held");
  const shown = h("output", { for: id }, side.text(state.held[side.index]));
  let waiting;
  const slide = h("input", { id, type: "range", min: side.low, max: side.high, step: "any",
    value: String(state.held[side.index]), oninput: () => {
    state.held[side.index] = Number(slide.value);
    shown.textContent = side.text(state.held[side.index]);
    clearTimeout(waiting);
    waiting = setTimeout(changed, 120);
  } });
  slide.value = String(state.held[side.index]);
  return h("div.field", h("label", { for: id }, `${side.label}: `, shown), slide);
}

function drawn({ x, decision }, along, side) {
  const { learned, peak, error, today, set_by: guards } = decision[side.name];
  const cut = (value) => Math.min(Math.max(value, side.low), side.high);
  const sure = (k) => peak[k] !== null && error[k] !== null;
  const band = x.map((at, k) => ({ x: at, y: sure(k) ? peak[k] : null,
    low: sure(k) ? cut(peak[k] - 2 * error[k]) : undefined,
    high: sure(k) ? cut(peak[k] + 2 * error[k]) : undefined }));
  const series = [{ kind: "ours", name: "best known", points: x.map((at, k) => ({ x: at, y: learned[k] })) },
    { kind: "ours", name: "where payoffs put the best", quiet: true, points: band },
    { kind: "theirs", name: "today", points: x.map((at, k) => ({ x: at, y: today[k] })) }];
  const said = (k) => (sure(k) ? plusMinus(peak[k], error[k]) : "not shown yet");
  const chart = lines({
    label: `Best ${side.label} along ${along.label}, from ${side.text(learned[0])} to ${side.text(learned.at(-1))}`, series,
    x: { name: along.label, low: along.low, high: along.high }, y: { name: side.label },
    read: (k) => [`${along.name} ${along.text(x[k])}`, `best known ${side.text(learned[k])}`,
      `payoffs put it at ${said(k)}`, `today ${side.text(today[k])}`,
      ...(guards[k] ? [`set by: ${guards[k]}`] : [])],
  });
  return figure({
    title: `Best ${side.label}`, chart,
    data: () => ({ columns: [{ name: along.label, number: true }, { name: "Best known", number: true },
      { name: "Payoffs put it at", number: true }, { name: "Today", number: true }, { name: "Set by" }],
      rows: x.map((at, k) => [along.cell(at), side.cell(learned[k]), said(k),
        side.cell(today[k]), guards[k] || null]) }),
  });
}
