// What happens, as it happens: one stream for all who look, shown a few times a second.

import { experiment, stream } from "./api.js";

const SHOWN_EVERY = 250; // milliseconds
const AGAIN = 2000; // milliseconds before a stream that broke is begun again

export class Live {
  #name; #signal; #after = 0; #new = []; #listeners = new Set();

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
    this.#listeners.add({ listener, every, last: 0, kept: [], busy: false });
  }

  async #follow() {
    while (!this.#signal.aborted) {
      try {
        const path = experiment(this.#name, `/stream?after=${this.#after}`);
        for await (const event of stream(path, this.#signal)) {
          this.#after = event.position;
          this.#new.push(event);
        }
      } catch (error) {
        if (this.#signal.aborted) return;
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }

  async #show() {
    const events = this.#new.splice(0);
    const now = performance.now();
    for (const one of this.#listeners) {
      one.kept.push(...events);
      if (!one.kept.length || one.busy || now - one.last < one.every) continue;
      const given = one.kept.splice(0);
      [one.last, one.busy] = [now, true];
      Promise.resolve(one.listener(given)).catch(() => {}).finally(() => { one.busy = false; });
    }
  }
}
