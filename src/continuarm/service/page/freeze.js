// What is frozen, and a form that freezes more contexts: a lowest and a highest value for each.

import { experiment, send, until } from "./api.js";
import { confirmed, fresh, h, noNumber, numberOf, refuse, say, sentence } from "./dom.js";

const MEANS = "They will be answered as now until they are unfrozen. Payoffs that come meanwhile are counted and "
  + "never learned. This needs the scope admin.";

/** How many segments and bins are frozen. */
export const frozenOf = ({ frozen: { segments, bins } }) => segments.length + bins.length;

/**
 * refresh: asks what the experiment is now, and puts it into `known.found`.
 * segment: what the form is filled with; closed: called at the end.
 */
export function openFreeze(known, refresh, { segment: filled, closed } = {}) {
  const { name, context } = known;
  const title = fresh("title");
  const error = h("p.error", { role: "alert", hidden: true });
  const listing = h("div");
  const sides = context.map((side) => between(side, filled?.[side.name]));
  const form = h("form", { novalidate: true }, h("h2", "Freeze contexts"),
    h("p.note", `From where to where, both included; what is left empty may be anything. ${MEANS}`),
    sides.map((side) => side.element), error,
    h("div.row", h("button.primary", "Freeze"), h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  const dialog = h("dialog", { "aria-labelledby": title, onclose: () => {
    dialog.remove();
    closed?.();
  } },
    h("h2", { id: title, tabindex: "-1", autofocus: true }, "What is frozen"), listing, form);

  const seen = (wanted) => until(async () => { await refresh(); return wanted(known.found.frozen); });
  const draw = () => listing.replaceChildren(frozen(known.found.frozen, thaw));

  async function thaw(what, path, body, wanted) {
    if (!(await confirmed(`Unfreeze ${what}?`, "The policy will try decisions there and learn from payoffs again. This needs the scope admin.",
      "Unfreeze"))) return;
    await tried(async () => {
      await send("POST", experiment(name, path), body);
      await seen(wanted);
      draw();
      say(`${what} is unfrozen`);
    });
  }

  async function tried(work) {
    error.hidden = true;
    sides.forEach((side) => side.wrong(null));
    try {
      await work();
    } catch (refused) {
      const side = sides.find((one) => refused.message.includes(` ${one.name} in \`segment\``));
      if (side) side.wrong(refused.message);
      else refuse(error, refused.message);
    }
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    sides.forEach((side) => side.wrong(null));
    const unread = sides.filter((side) => side.unread());
    unread.forEach((side) => side.wrong(side.unread()));
    if (unread.length) return unread[0].focus();
    await tried(async () => {
      const before = known.found.frozen.segments.length;
      const segment = Object.fromEntries(sides.map((side) => [side.name, side.ends()]).filter(([, ends]) => ends));
      const made = await send("POST", experiment(name, "/freeze"), { segment });
      await seen(({ segments }) => segments.length > before);
      sides.forEach((side) => side.clear());
      draw();
      say(`Frozen: ${made.segment.text}`);
    });
  });

  draw();
  document.body.append(dialog);
  dialog.showModal();
}

/** What is frozen, each with a button that unfreezes it. */
function frozen({ segments, bins }, thaw) {
  const row = (text, ...given) => h("li.row", h("span", text),
    h("button", { type: "button", "aria-label": `Unfreeze ${text}`, onclick: () => thaw(...given) }, "Unfreeze"));
  const rows = [
    ...segments.map(({ segment, text }) => row(text, text, "/unfreeze", { segment },
      (now) => !now.segments.some((one) => one.text === text))),
    ...bins.map((bin) => row(`Bin ${bin}`, `bin ${bin}`, `/bins/${bin}/unfreeze`, undefined, (now) => !now.bins.includes(bin))),
  ];
  return rows.length ? h("ul.frozen", rows) : h("p.note", "Nothing is frozen.");
}

/** From where to where of one context: two fields and what is wrong with them. */
function between({ name, label, low, high, text }, filled) {
  const [from, to, wrong, hint] = [fresh("from"), fresh("to"), fresh("wrong"), fresh("range")];
  const input = (id, word, k) => h("input", { id, inputmode: "decimal", autocomplete: "off", value: filled?.[k],
    "aria-label": `${label}: ${word}`, "aria-describedby": `${hint} ${wrong}` });
  const inputs = [input(from, "lowest", 0), input(to, "highest", 1)];
  const said = h("span.error", { id: wrong });
  const typed = () => inputs.map((one) => one.value.trim());
  return {
    name,
    element: h("div.between", h("span.label", label), inputs[0], h("span", "to"), inputs[1],
      h("span.hint", { id: hint }, `${text(low)} to ${text(high)}`), said),
    unread: () => typed().filter(Boolean).map(noNumber).find(Boolean) ?? null,
    ends: () => (typed().some(Boolean) ? typed().map((one, k) => (one ? numberOf(one) : [low, high][k])) : null),
    clear: () => inputs.forEach((one) => { one.value = ""; }),
    focus: () => inputs[0].focus(),
    wrong(message) {
      said.replaceChildren(...sentence(message ?? ""));
      for (const one of inputs) {
        if (message) one.setAttribute("aria-invalid", "true");
        else one.removeAttribute("aria-invalid");
      }
    },
  };
}
