// One experiment: its numbers, what can be done to it, and its views.

import { about, count, countsOf, healthOf, meansOf, payoffOf, pill, sidesOf, upliftOf } from "./about.js";
import { experiment, response, send, until } from "./api.js";
import { showAsk } from "./ask.js";
import { showBins } from "./bins.js";
import { showCells } from "./cells.js";
import { confirmed, h, refuse, say } from "./dom.js";
import { frozenOf, openFreeze } from "./freeze.js";
import { showFindings } from "./findings.js";
import { showLearned } from "./learned.js";
import { Live } from "./live.js";
import { showNow } from "./now.js";

const BINS = ["bins", "Bins", showBins], CELLS = ["bins", "Segments", showCells];
const viewsOf = ({ one_bin, context }) => [["", "Now", showNow], one_bin && context.names.length ? CELLS : BINS,
  ["learned", "What it learned", showLearned], ["ask", "What would it decide?", showAsk], ["findings", "Findings", showFindings]];

const SELDOM = 10_000; // milliseconds: what no event says, such as an archived experiment, is seen, too

export async function showExperiment(room, signal, name, rest) {
  const [part, given] = rest.split("?");
  const found = await about(name);
  if (signal.aborted) return;
  const known = { name, found, context: sidesOf(found.context), decision: sidesOf(found.decision), payoff: payoffOf(found),
    live: new Live(name, signal), given: new URLSearchParams(given) };
  const numbers = h("dl.numbers", { "aria-label": "Its numbers" });
  const actions = h("div.actions");
  const state = h("span");
  const refresh = async () => {
    const fresh = await about(name);
    if (signal.aborted) return;
    known.found = fresh;
    fillNumbers(numbers, fresh);
    fillActions(actions, state, known, refresh);
  };
  fillNumbers(numbers, found);
  fillActions(actions, state, known, refresh);
  known.live.follow(refresh, 2000);
  const again = setInterval(() => document.hidden || refresh().catch(() => {}), SELDOM);
  signal.addEventListener("abort", () => clearInterval(again));
  known.refresh = refresh;
  const inside = h("div.inside"), views = viewsOf(found);
  room.replaceChildren(h("div.heading", h("h1", name), state, h("span.note", found.policy), actions), numbers,
    tabs(name, part, views), inside);
  const [, , show] = views.find(([word]) => word === part) ?? views[0];
  known.live.begin(found.events);
  await show(inside, known);
}

function tabs(name, part, views) {
  const base = `#/experiments/${encodeURIComponent(name)}`;
  return h("nav.tabs", { "aria-label": "Views of this experiment" }, views.map(([word, text]) =>
    h("a", { href: word ? `${base}/${word}` : base, "aria-current": word === part ? "page" : null }, text)));
}

function fillNumbers(room, found) {
  const shown = [...countsOf(found), ...(found.one_bin ? [] : [["Bins", count(found.bins)]]), [`Mean ${payoffOf(found).name} lately`, ...meansOf(found)],
    ["Against the incumbent", ...upliftOf(found)]];
  room.replaceChildren(...shown.map(([what, value, aside]) => h("div", h("dt", what), h("dd", value),
    aside ? h("dd.aside", aside) : null)));
}

function fillActions(room, state, known, refresh) {
  const { name, found } = known;
  state.replaceChildren(found.archived ? pill("archived") : healthOf(found),
    ...(found.paused ? [" ", pill("paused")] : []),
    ...(frozenOf(found) ? [" ", pill("frozen", `${count(frozenOf(found))} frozen`)] : []));
  const error = h("p.error", { role: "alert", hidden: true });
  const tried = (work) => async () => {
    try {
      await work();
    } catch (refused) {
      refuse(error, refused.message);
    }
  };
  const steer = async () => {
    const verb = known.found.paused ? "resume" : "pause";
    const [title, text] = known.found.paused ? ["Resume?", "The policy decides again."]
      : ["Pause?", "Every decision will be the incumbent's, until it is resumed."];
    if (!(await confirmed(title, `${text} This needs the scope admin.`,
      known.found.paused ? "Resume" : "Pause"))) return;
    await send("POST", experiment(name, `/${verb}`));
    const wanted = verb === "pause";
    await until(async () => { await refresh(); return known.found.paused === wanted; });
    say(`${name} is ${verb}d`);
  };
  const download = async () => {
    const content = await (await response(experiment(name, "/export"))).blob();
    const address = URL.createObjectURL(content);
    h("a", { href: address, download: `${name}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  room.replaceChildren(...[h("button", { type: "button", onclick: tried(steer), disabled: found.archived },
    found.paused ? "Resume" : "Pause"),
    known.context.length ? h("button", { type: "button", onclick: () => openFreeze(known, refresh),
      disabled: found.archived }, "Freeze…") : null,
    h("button", { type: "button", onclick: tried(download) }, "Download the export"), error].filter(Boolean));
}
