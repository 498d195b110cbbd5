// What happens, as it happens: one stream for all who look, shown a few times a second.

import { experiment, get, stream } from "./api.js";

const SHOWN_EVERY = 250; // milliseconds
const AGAIN = 2000; // milliseconds before a stream that broke is begun again

export class Live {
  #name; #signal; #after = 0; #new = []; #broken = false; #listeners = new Set();

  constructor(name, signal) {
    this.#name = name;
    this.#signal = signal;
  }

  /** Follow from a position on. */
  begin(after) {
    this.#after = after;
    this.#follow();
    const shown = setInterval(() => this.#show(), SHOWN_EVERY);
    this.#signal.addEventListener("abort", () => clearInterval(shown));
  }

  /** Call with the new events, at most once in so many milliseconds. */
  follow(listener, every = 0) {
    this.#listeners.add({ listener, every, last: 0, kept: [], busy: false, stale: false });
  }

  async #follow() {
    while (!this.#signal.aborted) {
      const unseen = new AbortController(), look = () => document.hidden && unseen.abort();
      document.addEventListener("visibilitychange", look);
      try {
        await this.#listen(AbortSignal.any([this.#signal, unseen.signal]));
      } catch (error) {
        if (this.#signal.aborted) return;
      } finally {
        document.removeEventListener("visibilitychange", look);
      }
      this.#broken = true;
      if (document.hidden) await this.#seen();
      else await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }

  async #listen(signal) {
    for await (const event of stream(experiment(this.#name, `/stream?after=${this.#after}`), signal)) {
      this.#after = event.position;
      this.#new.push(event);
    }
  }

  /** A browser has six connections for all tabs: one that nobody sees keeps none, and goes on from now. */
  async #seen() {
    await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
    const { events } = await get(experiment(this.#name)).catch(() => ({ events: this.#after }));
    this.#after = events;
  }

  /** Tell what is new; after a break also if nothing is: who knows what was missed. */
  async #show() {
    const events = this.#new.splice(0), broken = this.#broken;
    const now = performance.now();
    this.#broken = false;
    for (const one of this.#listeners) {
      one.kept.push(...events);
      one.stale ||= broken;
      if (!(one.kept.length || one.stale) || one.busy || now - one.last < one.every) continue;
      const given = one.kept.splice(0);
      [one.last, one.busy, one.stale] = [now, true, false];
      Promise.resolve(one.listener(given)).catch(() => {}).finally(() => { one.busy = false; });
    }
  }
}
