// All experiments, with how each fares.

import { countsOf, healthOf, meansOf, pill, policyOf, upliftOf } from "./about.js";
import { get } from "./api.js";
import { h } from "./dom.js";

const REFRESH = 3000; // milliseconds
const COLUMNS = [["Experiment"], ["Health"], ["Decisions", true], ["Payoffs", true], ["Open", true], ["Late", true],
  ["Lost", true],
  ["Mean payoff lately", true], ["Against the incumbent", true]];

export async function showList(room, signal, note = null) {
  const body = h("tbody");
  const heading = h("div.heading", h("h1", "Experiments"), h("div.actions",
    h("a.button.primary", { href: "#/new" }, "New experiment")));
  const listing = h("div.card", h("div.scrolls", { tabindex: "0", role: "region", "aria-label": "Experiments" },
    h("table.list", h("caption.unseen", "Experiments"), h("thead",
      h("tr", COLUMNS.map(([text, number]) => h(number ? "th.number" : "th", { scope: "col" }, text)))), body)));
  const nothing = h("div.empty", h("p.title", "There is no experiment yet."),
    h("p", "Make one here, by the API, or see one run with ", h("code", "continuarm demo"), "."));
  const refresh = async () => {
    const { experiments, unavailable } = await get("/v1/experiments");
    if (signal.aborted) return;
    const rows = [...experiments.map(row), ...unavailable.map(broken)];
    if (!body.contains(document.activeElement)) body.replaceChildren(...rows); // who stands there keeps the place
    room.replaceChildren(heading, ...(note ? [h("p.note", note)] : []), rows.length ? listing : nothing);
  };
  await refresh();
  const again = setInterval(() => document.hidden || listing.contains(document.activeElement) || refresh().catch(() => {}), REFRESH);
  signal.addEventListener("abort", () => clearInterval(again));
}

function row(one) {
  const [mean, before] = meansOf(one), [better, range] = upliftOf(one);
  return h("tr", h("td.long", h("a", { href: `#/experiments/${encodeURIComponent(one.name)}` }, one.name),
    h("span.aside", policyOf(one))),
    h("td", one.paused ? pill("paused") : healthOf(one)), countsOf(one).map(([, value]) => h("td.number", value)),
    h("td.number", mean, h("span.aside", before)), h("td.number", better, h("span.aside", range)));
}

const broken = ({ name, message }) => h("tr", h("td.long", name),
  h("td.error", { colspan: COLUMNS.length - 1 }, message));
