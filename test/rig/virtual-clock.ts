/** Time that passes only when everybody sleeps: an event loop for simulations, without real waiting. */
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/platform/clock.js';

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** A clock that jumps to the next sleeper once all pending promises have run. */
export class VirtualClock implements Clock {
  /** Latest first, so that the next one is at the end. */
  readonly #sleepers: Sleeper[] = [];
  readonly #start: number;
  /** Counted from 0, so that fractions of a millisecond are not lost beside the years since the epoch. */
  #elapsed = 0;

  constructor(start = 0) {
    this.#start = start;
  }

  now(): number {
    return Math.floor(this.#start + this.#elapsed);
  }

  monotonic(): number {
    return this.#elapsed;
  }

  iso(): string {
    return new Date(this.now()).toISOString();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) {
        resolve();
        return;
      }
      const onAbort = (): void => {
        const index = this.#sleepers.indexOf(sleeper);
        if (index >= 0) this.#sleepers.splice(index, 1);
        resolve();
      };
      const sleeper = {
        at: this.#elapsed + Math.max(0, ms),
        wake: (): void => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#insert(sleeper);
    });
  }

  /** How many sleep. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  /** Lets time pass until the work settles; rejects when it can never settle, because nobody sleeps. */
  async drive<T>(work: Promise<T>, onQuiet?: () => void): Promise<T> {
    const state = { isSettled: false };
    const settle = (): void => {
      state.isSettled = true;
    };
    work.then(settle, settle);
    for (;;) {
      // One turn of the real event loop runs every promise that can run.
      await turn();
      if (state.isSettled) return work;
      onQuiet?.();
      const next = this.#sleepers.pop();
      if (next === undefined) throw new Error('the work waits for something that never happens');
      this.#elapsed = next.at;
      next.wake();
    }
  }

  #insert(sleeper: Sleeper): void {
    let low = 0;
    let high = this.#sleepers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#sleepers[middle];
      // Of those with one time the first to sleep wakes first.
      if (other !== undefined && other.at > sleeper.at) low = middle + 1;
      else high = middle;
    }
    this.#sleepers.splice(low, 0, sleeper);
  }
}
