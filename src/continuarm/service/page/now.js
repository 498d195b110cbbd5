// Now: what was paid over time, what was found, and decisions as they arrive.

import { experiment, get } from "./api.js";
import { historyFigure } from "./history.js";
import { redraw } from "./charts.js";
import { fresh, h } from "./dom.js";
import { clock, plain, within } from "./numbers.js";

const SHOWN = 12; // decisions at once
const KEPT = 20_000; // decisions whose payoffs are waited for
const LATELY = 5000; // milliseconds

export async function showNow(room, known) {
  const over = h("div");
  const refresh = async () => redraw(over, [await historyFigure(known.name)]);
  room.replaceChildren(over, arrivals(known));
  await refresh();
  known.live.follow(refresh, 5000);
}

/** Decisions as they arrive, the newest first; one comes up again when its payoff does. */
function arrivals({ name, context, decision, live }) {
  const shown = [];
  const body = h("tbody");
  const nothing = h("p.note", "Waiting for the next decision…");
  const rate = h("span.note");
  const stop = h("button", { type: "button", "aria-pressed": "false", onclick: () => {
    const now = stop.getAttribute("aria-pressed") !== "true";
    stop.setAttribute("aria-pressed", String(now));
    stop.textContent = now ? "Go on" : "Hold";
  } }, "Hold");
  const columns = ["Time", "Payoff", "Decision", "Role", ...(context.length ? ["Context"] : [])];
  const times = [], began = performance.now();
  const open = new Map(); // those without a payoff, by their id
  const rowOf = (event) => h("tr",
    h("td", h("button.link", { type: "button", "aria-label": `Why the decision of ${clock(event.time)}?`,
      onclick: () => explain(name, event.id) }, clock(event.time))),
    h("td.number", h("span.note", "open")), h("td.values", said(decision, event.value)), h("td", event.role),
    context.length ? h("td.values", said(context, event.context)) : null);
  const raise = (one) => {
    const at = shown.indexOf(one);
    if (at >= 0) shown.splice(at, 1);
    shown.unshift(one);
    shown.length = Math.min(shown.length, SHOWN);
  };
  live.follow((events) => {
    const now = performance.now(), held = stop.getAttribute("aria-pressed") === "true", raised = new Set();
    for (const event of events) {
      const asked = event.event === "asked", one = asked ? { event, payoff: null } : open.get(event.id);
      if (!one) continue;
      if (asked) {
        times.push(now);
        open.set(event.id, one);
        if (open.size > KEPT) open.delete(open.keys().next().value);
      } else {
        one.payoff = event.event === "told" ? plain(event.payoff) : event.event;
        open.delete(event.id);
      }
      if (!held) raise(one);
      raised.add(one);
    }
    while (times.length && now - times[0] > LATELY) times.shift();
    const seconds = Math.max(Math.min(now - began, LATELY), 1000) / 1000;
    rate.textContent = `${(times.length / seconds).toFixed(1)} a second`;
    for (const one of shown) {
      one.row ??= rowOf(one.event);
      if (one.payoff !== null) one.row.querySelector(".number").textContent = one.payoff;
      one.row.className = raised.has(one) ? "new" : "";
    }
    if (held) return;
    nothing.hidden = shown.length > 0;
    listing.hidden = !nothing.hidden;
    body.replaceChildren(...shown.map((one) => one.row));
  });
  const listing = h("div.scrolls", { hidden: true, tabindex: "0", role: "region",
    "aria-label": "The last decisions" }, h("table.live", h("caption.unseen", "The last decisions"),
    h("thead", h("tr", columns.map((text) => h(text === "Payoff" ? "th.number" : "th", { scope: "col" }, text)))),
      body));
  return h("section.card", { "aria-label": "Decisions as they arrive" },
    h("div.heading", h("h2", "Decisions as they arrive"), rate, h("div.actions", stop)), nothing, listing);
}

/** Why a decision was made, as of then. */
async function explain(name, id) {
  const { text } = await get(experiment(name, `/explain/${id}`)).catch((error) => ({ text: error.message }));
  const [first, ...rest] = text.split("\n");
  const title = fresh("title");
  const dialog = h("dialog", { "aria-labelledby": title, onclose: () => dialog.remove() },
    h("h2", { id: title }, "Why this decision?"), h("p.why", first),
    h("ul.why", rest.map((line) => h("li", line))), h("form.row", { method: "dialog" },
      h("button.primary", "Close")));
  document.body.append(dialog);
  dialog.showModal();
}

const MOST = 4; // values in a cell
function said(sides, values) {
  const parts = sides.slice(0, MOST).map((side, k) => `${side.name} ${within(values[k], side.span)}`);
  return parts.join(", ") + (sides.length > MOST ? " …" : "");
}
