// Now: what was paid over time, what was found, and decisions as they arrive.

import { experiment, get, response } from "./api.js";
import { historyFigure } from "./history.js";
import { redraw } from "./charts.js";
import { fresh, h } from "./dom.js";
import { clock, like } from "./numbers.js";

const SHOWN = 12; // decisions at once
const BEFORE = 400; // events that are looked through for the last decisions
const KEPT = 20_000; // decisions whose payoffs are waited for
const LATELY = 5000; // milliseconds
const MOST = 4; // coordinates of a decision, and of a context

export async function showNow(room, known) {
  const over = h("div");
  const refresh = async () => redraw(over, [await historyFigure(known)]);
  room.replaceChildren(over, arrivals(known));
  await refresh();
  known.live.follow(refresh, 5000);
}

/** The decisions of which something was heard last, in the order of the ledger, the newest first. */
function arrivals({ name, found, context, decision, payoff, live }) {
  const shown = [], size = Math.abs(found.payoff.lately?.mean ?? 0);
  const body = h("tbody", { role: "rowgroup" });
  const nothing = h("p.note", "Waiting for the next decision…");
  const rate = h("span.note");
  const stop = h("button", { type: "button", "aria-pressed": "false", onclick: () => {
    const now = stop.getAttribute("aria-pressed") !== "true";
    stop.setAttribute("aria-pressed", String(now));
    stop.textContent = now ? "Go on" : "Hold";
  } }, "Hold");
  const [decided, given] = [decision.slice(0, MOST), context.slice(0, MOST)];
  const earlier = before(name, found.events).catch(() => []);
  const times = [], began = performance.now();
  const open = new Map(); // those without a payoff, by their id
  const cells = (sides, values, more) => sides.map((side, k) => cell(side.label, side.cell(values?.[k]), more));
  const rowOf = (event) => h("tr", { role: "row" },
    h("td", { role: "cell" }, h("button.link", { type: "button", "aria-label": `Why the decision of ${clock(event.time)}?`,
      onclick: () => explain(name, event.id) }, clock(event.time))),
    cell(payoff.heading, h("span.note", "open"), ".paid"), h("td.role", { role: "cell" }, event.role),
    cells(decided, event.value, ""), cells(given, event.context, ".given"));
  const raise = (one) => {
    const at = shown.indexOf(one);
    if (at >= 0) shown.splice(at, 1);
    shown.unshift(one);
    shown.length = Math.min(shown.length, SHOWN);
  };
  const show = (events, arrived) => {
    const now = performance.now(), raised = new Set();
    const held = stop.getAttribute("aria-pressed") === "true" || body.contains(document.activeElement);
    for (const event of events) {
      const asked = event.event === "asked", one = asked ? { event, payoff: null } : open.get(event.id);
      if (!one) continue;
      if (asked) {
        if (arrived) times.push(now);
        open.set(event.id, one);
        if (open.size > KEPT) open.delete(open.keys().next().value);
      } else {
        one.payoff = event.event === "told" ? like(event.payoff, size) : event.event;
        open.delete(event.id);
      }
      if (!held) raise(one);
      if (arrived) raised.add(one);
    }
    while (times.length && now - times[0] > LATELY) times.shift();
    const seconds = Math.max(Math.min(now - began, LATELY), 1000) / 1000;
    rate.textContent = `${(times.length / seconds).toFixed(1)} a second`;
    for (const one of shown) {
      one.row ??= rowOf(one.event);
      if (one.payoff !== null) one.row.querySelector(".paid").textContent = one.payoff;
      one.row.className = raised.has(one) ? "new" : "";
    }
    if (held) return;
    nothing.hidden = shown.length > 0;
    listing.hidden = !nothing.hidden;
    const ordered = [...shown].sort((one, other) => other.event.position - one.event.position);
    body.replaceChildren(...ordered.map((one) => one.row));
  };
  const begun = earlier.then((events) => events.length && show(events, false)).catch(() => {});
  live.follow(async (events) => { await begun; show(events, true); });
  const listing = h("div.scrolls", { hidden: true, tabindex: "0", role: "region",
    "aria-label": "The last decisions" }, h("table.live", { role: "table" },
    h("caption.unseen", "The last decisions"), head(payoff, [["Decision", decided, decision], ["Context", given, context]]),
    body));
  return h("section.card", { "aria-label": "Decisions as they arrive" },
    h("div.heading", h("h2", "Decisions as they arrive"), rate, h("div.actions", stop)), nothing, listing);
}

/** What happened last before the stream begins. */
async function before(name, events) {
  const found = await response(experiment(name, `/events?after=${Math.max(events - BEFORE, 0)}`));
  const lines = (await found.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return lines.filter(({ position }) => position <= events);
}

/** A number with its name, which is shown where there is no room for a head. Roles stay on a phone. */
const cell = (label, text, more = "") => h(`td.number${more}`, { role: "cell", "data-name": label }, text);

/** Names above the columns, and above them what they are of. */
function head(payoff, groups) {
  const shown = groups.filter(([, some]) => some.length), column = { role: "columnheader", scope: "col" };
  const title = (text, some, all) => (some.length < all.length ? `${text} (${some.length} of ${all.length})` : text);
  return h("thead", { role: "rowgroup" },
    h("tr", { role: "row" }, h("td", { role: "cell", colspan: 3 }), shown.map(([text, some, all]) => h("th.group",
      { role: "columnheader", scope: "colgroup", colspan: some.length }, title(text, some, all)))),
    h("tr", { role: "row" }, h("th", column, "Time"), h("th.number", column, payoff.heading), h("th", column, "Role"),
      shown.flatMap(([, some]) => some.map((side) => h("th.number", column, side.label)))));
}

/** Why a decision was made, as of then. */
async function explain(name, id) {
  const { text } = await get(experiment(name, `/explain/${id}`)).catch((error) => ({ text: error.message }));
  const [first, ...rest] = text.split("\n");
  const title = fresh("title");
  const dialog = h("dialog", { "aria-labelledby": title, onclose: () => dialog.remove() },
    h("h2", { id: title, tabindex: "-1", autofocus: true }, "Why this decision?"), h("p.why", first),
    h("ul.why", rest.map((line) => h("li", line))), h("form.row", { method: "dialog" },
      h("button.primary", "Close")));
  document.body.append(dialog);
  dialog.showModal(); // the heading has the focus: it is read from its top
  dialog.scrollTop = 0;
}
