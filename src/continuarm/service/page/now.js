// Now: what was paid over time, what was found, and decisions as they arrive.

import { experiment, get } from "./api.js";
import { historyFigure } from "./history.js";
import { redraw } from "./charts.js";
import { fresh, h } from "./dom.js";
import { clock, plain, within } from "./numbers.js";

const SHOWN = 12; // decisions at once

export async function showNow(room, known) {
  const over = h("div");
  const refresh = async () => redraw(over, [await historyFigure(known.name)]);
  room.replaceChildren(over, arrivals(known));
  await refresh();
  known.live.follow(refresh, 5000);
}

/** Decisions as they arrive, the newest first; their payoffs when they come. */
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
  const columns = ["Time", "Decision", "Payoff", "Role", ...(context.length ? ["Context"] : [])];
  const times = [];
  live.follow((events) => {
    const asked = events.filter((event) => event.event === "asked");
    const now = performance.now();
    times.push(...asked.map(() => now));
    while (times.length && now - times[0] > 5000) times.shift();
    rate.textContent = `${(times.length / 5).toFixed(1)} a second`;
    if (stop.getAttribute("aria-pressed") === "true") return;
    const fresh = new Set(asked.map((event) => event.id));
    shown.unshift(...asked.slice(-SHOWN).reverse().map((event) => ({ event, payoff: null })));
    shown.length = Math.min(shown.length, SHOWN);
    for (const event of events) {
      const row = event.event === "asked" ? null : shown.find((one) => one.event.id === event.id);
      if (row) row.payoff = event.event === "told" ? plain(event.payoff) : event.event;
    }
    nothing.hidden = shown.length > 0;
    listing.hidden = !nothing.hidden;
    body.replaceChildren(...shown.map(({ event, payoff }) => h("tr", { class: fresh.has(event.id) ? "new" : null },
      h("td", h("button.link", { type: "button", "aria-label": `Why the decision of ${clock(event.time)}?`,
        onclick: () => explain(name, event.id) }, clock(event.time))), h("td", said(decision, event.value)),
        h("td.number", payoff ?? h("span.note", "open")),
      h("td", event.role), context.length ? h("td", said(context, event.context)) : null)));
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
