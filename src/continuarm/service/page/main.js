// Which view an address is, and what becomes of what goes wrong.

import { signOut, token } from "./api.js";
import { empty, h, say, sentence } from "./dom.js";
import { showList } from "./list.js";
import { showExperiment } from "./experiment.js";
import { showForm } from "./form.js";

const view = document.getElementById("view");
const foot = document.querySelector(".foot");
let leave = () => {};

/** What ± means is said where there is one. */
const explainErrors = () => { foot.hidden = !view.textContent.includes("±"); };

/** What the part of the address behind # asks for. */
function route() {
  const [, first, name, part] = location.hash.slice(1).split("/");
  if (first === "new") return { title: "New experiment", show: showForm };
  if (first === "experiments" && name) {
    const known = decoded(name);
    if (known === null) {
      const note = `There is no experiment at the address ${location.hash}: these are all.`;
      return { title: "Experiments", show: (room, signal) => showList(room, signal, note) };
    }
    return { title: known, show: (room, signal) => showExperiment(room, signal, known, part ?? "") };
  }
  return { title: "Experiments", show: showList };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

async function go() {
  leave();
  const { title, show } = route();
  foot.hidden = true;
  const ended = new AbortController();
  leave = () => ended.abort();
  document.title = `${title} · Continuarm`;
  for (const link of document.querySelectorAll(".top nav a")) {
    const here = link.getAttribute("href") === (location.hash || "#/");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const room = h("div.view", { "aria-busy": "true" });
  const hadFocus = view.contains(document.activeElement) || document.activeElement === document.body;
  view.replaceChildren(room);
  try {
    await show(room, ended.signal);
  } catch (error) {
    if (ended.signal.aborted) return;
    room.replaceChildren(h("h1", title), trouble(error));
  }
  room.removeAttribute("aria-busy");
  explainErrors();
  if (ended.signal.aborted) return;
  say(`${title} is shown`);
  if (hadFocus && location.hash) view.focus({ preventScroll: true });
}

const trouble = (error) => h("div.trouble", { role: "alert" }, empty("That did not work.", sentence(error.message),
  h("a", { href: "#/" }, "All experiments")));

document.getElementById("sign-out").hidden = !token();
document.getElementById("sign-out").addEventListener("click", signOut);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is the view's
  view.focus();
});
addEventListener("hashchange", go);
setInterval(explainErrors, 1000);
go();
