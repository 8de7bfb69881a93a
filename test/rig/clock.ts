import type { Clock } from '../../src/platform/clock.js';

interface Sleeper {
  readonly due: number;
  readonly wake: () => void;
}

/** A clock that stands still until the test moves it. */
export class FakeClock implements Clock {
  #now: number;
  readonly #start: number;
  readonly #sleepers = new Set<Sleeper>();
  readonly #watchers = new Set<{ readonly count: number; readonly resolve: () => void }>();

  constructor(start = Date.UTC(2030, 0, 1)) {
    this.#now = start;
    this.#start = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  iso(): string {
    return new Date(this.#now).toISOString();
  }

  /** How many sleep right now. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true || ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { due: this.#now + ms, wake };
      signal?.addEventListener('abort', wake);
      this.#sleepers.add(sleeper);
      for (const watcher of this.#watchers) {
        if (this.#sleepers.size < watcher.count) continue;
        this.#watchers.delete(watcher);
        watcher.resolve();
      }
    });
  }

  /** Resolves when someone sleeps (or so many do). */
  waiting(count = 1): Promise<void> {
    if (this.#sleepers.size >= count) return Promise.resolve();
    return new Promise((resolve) => {
      this.#watchers.add({ count, resolve });
    });
  }

  /**
   * Moves time on, waking each sleeper at its own moment and letting it act before the next wakes, so that a loop that sleeps
   * again within the span is woken again.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#now = Math.max(this.#now, next.due);
      next.wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#now = end;
  }

  #next(end: number): Sleeper | undefined {
    const due = [...this.#sleepers].filter((sleeper) => sleeper.due <= end);
    return due.sort((left, right) => left.due - right.due)[0];
  }
}
