// The public API, as everyone has it: a token when the server wants one, kept for this tab only.

import { fresh, h } from "./dom.js";

const KEY = "continuarm token";
export const token = () => sessionStorage.getItem(KEY);

/** What the server refused: `error` is for programs, the message for people. */
export class Refused extends Error {
  constructor(status, body) {
    super(body.message ?? `the server answered ${status}`);
    Object.assign(this, { status, error: body.error, field: body.field });
  }
}

export const experiment = (name, rest = "") => `/v1/experiments/${encodeURIComponent(name)}${rest}`;

/** ?age=37&income=52000 */
export const query = (values) => `?${new URLSearchParams(Object.entries(values).map(([k, v]) => [k, String(v)]))}`;

/** A request; asks for a token, and again, where one is needed. */
export async function response(path, options = {}) {
  const headers = { ...(options.body ? { "content-type": "application/json" } : {}) };
  const sent = token();
  if (sent) headers.authorization = `Bearer ${sent}`;
  let found;
  try {
    found = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    warn("The server does not answer. What is shown may be old; it is tried again.");
    throw new Refused(0, { error: "unreachable", message: "the server does not answer; is it running?" });
  }
  warn(found.status === 503 ? "The server cannot answer now. What is shown may be old; it is tried again." : null);
  if (found.status === 401) {
    await askForToken(sent);
    return response(path, options);
  }
  if (!found.ok) throw new Refused(found.status, await found.json().catch(() => ({})));
  return found;
}

/** A line above all that stands until the server answers again. */
function warn(text) {
  const line = document.getElementById("lost");
  if (line.textContent === (text ?? "")) return;
  Object.assign(line, { textContent: text ?? "", hidden: !text });
}

export const get = async (path, options) => (await response(path, options)).json();

export const send = async (method, path, body) =>
  (await response(path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })).json();

/** Server-sent events of a path, until aborted; fetch, because an EventSource sends no token. */
export async function* stream(path, signal) {
  const found = await response(path, { signal });
  const reader = found.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const line = part.split("\n").find((one) => one.startsWith("data: "));
      if (line) yield JSON.parse(line.slice(6));
    }
  }
}

/** What was acknowledged is seen when it is folded, a few milliseconds later: look until then. */
export async function until(seen) {
  for (let k = 0; k < 30 && !(await seen()); k += 1) await new Promise((resolve) => setTimeout(resolve, 50));
}

let asking = null;

/** One dialog for all requests that wait for a token. */
function askForToken(refused) {
  if (token() && token() !== refused) return Promise.resolve(); // another request has got one
  sessionStorage.removeItem(KEY);
  asking ??= dialog(refused).finally(() => { asking = null; });
  return asking;
}

function dialog(refused) {
  const [title, field, hint] = [fresh("title"), fresh("token"), fresh("hint")];
  const input = h("input", { id: field, type: "password", autocomplete: "off", required: true,
    "aria-describedby": hint });
  const text = refused ? "The server does not know that token." : "This server answers to those who have a token.";
  const form = h("form", h("h2", { id: title }, "A token is needed"), h("p", { id: hint }, text,
    " One is made by ", h("code", "continuarm token create NAME --scope read --store STORE"), ". It is kept for this tab only."),
    h("label", { for: field }, "Token"), input, h("div.row", h("button.primary", "Go on")));
  const own = h("dialog", { "aria-labelledby": title }, form);
  own.addEventListener("cancel", (event) => event.preventDefault());
  document.body.append(own);
  own.showModal();
  return new Promise((resolve) => form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, input.value.trim());
    document.getElementById("sign-out").hidden = false;
    own.close();
    own.remove();
    resolve();
  }));
}

/** Forget the token, and begin again. */
export function signOut() {
  sessionStorage.removeItem(KEY);
  location.reload();
}
