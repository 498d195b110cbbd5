// All experiments, with how each fares.

import { countsOf, healthOf, meansOf, pill, upliftOf } from "./about.js";
import { get } from "./api.js";
import { fresh, h } from "./dom.js";
import { count } from "./numbers.js";

const REFRESH = 3000; // milliseconds, and
const SELDOM = 10; // times as long as it takes
const MANY = 12; // from then on one can be looked for
const ENOUGH = 4; // letters of a word of health
const AT_ONCE = 200; // rows; a button shows as many more
const COLUMNS = [["Experiment"], ["Health"], ["Decisions", true], ["Payoffs", true], ["Open", true], ["Late", true],
  ["Lost", true],
  ["Mean payoff lately", true], ["Against the incumbent", true]];
const LESSER = new Set(["Payoffs", "Open", "Late", "Lost"]);

export async function showList(room, signal, note = null) {
  const body = h("tbody", { role: "rowgroup" });
  const heading = h("div.heading", h("h1", "Experiments"), h("div.actions",
    h("a.button.primary", { href: "#/new" }, "New experiment")));
  const listing = h("div.card", h("div.scrolls", { tabindex: "0", role: "region", "aria-label": "Experiments" },
    h("table.list", { role: "table" }, h("caption.unseen", "Experiments"), h("thead", { role: "rowgroup" },
      h("tr", { role: "row" }, COLUMNS.map(([text, number]) => h(number ? "th.number" : "th",
        { role: "columnheader", scope: "col" }, text)))), body)));
  const nothing = h("div.empty", h("p.title", "There is no experiment yet."),
    h("p", "Make one here, by the API, or see one run with ", h("code", "continuarm demo"), "."));
  const id = fresh("find"), shown = h("span.note", { role: "status" }), told = h("p.note", { hidden: !note }, note);
  let most = AT_ONCE;
  const find = h("input", { id, type: "search", autocomplete: "off", oninput: () => { most = AT_ONCE; fill(); } });
  const further = h("button", { type: "button", hidden: true, onclick: () => { most += AT_ONCE; fill(); } });
  const finding = h("div.choices", { hidden: true }, h("span.choice", h("label", { for: id }, "Find"), find), shown);
  let found = { experiments: [], unavailable: [], preparing: [] };

  function fill() {
    const word = find.value.trim().toLowerCase();
    const named = (one) => one.name.toLowerCase().includes(word) || (word.length >= ENOUGH
      && stateOf(one).startsWith(word));
    const all = found.experiments.length + found.unavailable.length + found.preparing.length;
    const chosen = [...found.experiments.filter(named).map((one) => [row, one]),
      ...found.unavailable.filter(named).map((one) => [broken, one]),
      ...found.preparing.map((name) => ({ name })).filter(named).map((one) => [coming, one])];
    body.replaceChildren(...chosen.slice(0, most).map(([draw, one]) => draw(one)));
    finding.hidden = all <= MANY;
    shown.textContent = chosen.length > most ? `the first ${count(most)} of ${count(chosen.length)} are shown`
      : `${count(chosen.length)} of ${count(all)}`;
    further.hidden = chosen.length <= most;
    further.textContent = `Show ${count(Math.min(AT_ONCE, chosen.length - most))} more`;
    [listing.hidden, nothing.hidden] = [!all, all > 0];
  }

  const refresh = async () => {
    const next = await get("/v1/experiments");
    if (signal.aborted) return;
    found = next;
    if (!body.contains(document.activeElement)) fill(); // who stands there keeps the place
  };
  listing.prepend(finding);
  listing.append(further);
  await refresh();
  if (signal.aborted) return;
  room.replaceChildren(heading, told, listing, nothing);
  let took = 0;
  const again = async () => {
    const began = performance.now();
    if (!document.hidden) await refresh().catch(() => {}); // what is lost is said above
    took = performance.now() - began;
    if (!signal.aborted) setTimeout(again, REFRESH + SELDOM * took);
  };
  setTimeout(again, REFRESH);
}

/** Its health, as the list says it in a word. */
const badge = (one) => (one.paused ? pill("paused") : healthOf(one));
const stateOf = (one) => (one.counts ? badge(one).lastChild.textContent : ""); // one that is broken has none

/** On a phone an experiment is a card: numbers have their names, those of LESSER are left out. Roles stay. */
function row(one) {
  const [mean, before] = meansOf(one), [better, range] = upliftOf(one);
  const number = (name, ...rest) => h(`td.number${LESSER.has(name) ? ".lesser" : ""}`,
    { role: "cell", "data-name": name }, ...rest);
  return h("tr", { role: "row" },
    h("td.long", { role: "cell" }, h("a", { href: `#/experiments/${encodeURIComponent(one.name)}` }, one.name),
      h("span.aside", one.policy)),
    h("td.state", { role: "cell" }, badge(one)), countsOf(one).map(([name, value]) => number(name, value)),
    number("Mean payoff lately", mean, h("span.aside", before)),
    number("Against the incumbent", better, h("span.aside", range)));
}

const broken = ({ name, message }) => h("tr", { role: "row" }, h("td.long", { role: "cell" }, name),
  h("td.error", { role: "cell", colspan: COLUMNS.length - 1 }, message));

const coming = ({ name }) => h("tr", { role: "row" }, h("td.long", { role: "cell" }, name),
  h("td.note", { role: "cell", colspan: COLUMNS.length - 1 },
    "It is being prepared. The first one of an installation is compiled, which takes half a minute or so."));
