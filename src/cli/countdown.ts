/**
 * Watches the time of a run that is to be over (`--until`, `--for`).
 *
 * No agent is started any more once what is left is needed to integrate and verify what those at work leave; at the
 * deadline itself the run is stopped in order. The reserve comes from the run's own landings: twice their median, from the
 * end of an agent to the integration, since what ends last waits behind another and is validated afterwards. Never more
 * than half of the time given. While nothing has landed it is a tenth of that time, at most ten minutes: the time limits of
 * gates are far above what gates take, and would leave a short night without any work.
 */
import { allowManyListeners, type Clock } from '../platform/clock.js';
import { RunningMedian } from '../scheduler/median.js';
import type { Deadline } from './deadline.js';

/** The time that is kept for what has left its agent. */
export function reserveMs(landingMs: number | undefined, givenMs: number): number {
  if (landingMs === undefined) return Math.min(givenMs / 10, 600_000);
  return Math.min(2 * landingMs, givenMs / 2);
}

/** Clocks may be set, and machines sleep: the time is looked at this often. */
const longestSleepMs = 60_000;

/** Watches the time of a run. */
export class Countdown {
  readonly #deadline: Deadline;
  readonly #clock: Clock;
  readonly #landings = new RunningMedian();
  readonly #noMore = new AbortController();
  readonly #closed = new AbortController();
  #wake = new AbortController();

  constructor(deadline: Deadline, clock: Clock) {
    this.#deadline = deadline;
    this.#clock = clock;
    allowManyListeners(this.#noMore.signal);
    allowManyListeners(this.#closed.signal);
  }

  /** Aborted: no agent is to be started any more. */
  get noMore(): AbortSignal {
    return this.#noMore.signal;
  }

  /** Learns how long it took from the end of an agent to the integration. */
  landed(ms: number): void {
    this.#landings.add(ms);
    // At once: what has just landed may release something.
    if (this.#lastDispatch() <= this.#clock.now()) this.#end();
    this.#wake.abort();
  }

  /** Waits for both moments; ends early when it is closed. */
  async watch(on: { readonly noMore: (leftMs: number) => void; readonly over: () => void }): Promise<void> {
    const { at } = this.#deadline;
    if (!(await this.#reaches(() => this.#lastDispatch()))) return;
    this.#end();
    on.noMore(Math.max(0, at - this.#clock.now()));
    if (await this.#reaches(() => at)) on.over();
  }

  /** The run is over. */
  close(): void {
    this.#closed.abort();
  }

  #lastDispatch(): number {
    const { at, from } = this.#deadline;
    return at - reserveMs(this.#landings.value, at - from);
  }

  #end(): void {
    this.#noMore.abort(new Error('no time is left for another agent'));
  }

  async #reaches(moment: () => number): Promise<boolean> {
    const closed = this.#closed.signal;
    for (;;) {
      const leftMs = moment() - this.#clock.now();
      if (closed.aborted) return false;
      if (leftMs <= 0) return true;
      this.#wake = new AbortController();
      await this.#clock.sleep(Math.min(leftMs, longestSleepMs), AbortSignal.any([closed, this.#wake.signal]));
    }
  }
}
