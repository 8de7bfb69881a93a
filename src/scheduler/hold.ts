/**
 * How long a freed slot may wait for an Issue that is about to land.
 *
 * Without it a slot that frees a moment before a landing goes to whatever is ready, and the more critical Issue which
 * that landing releases waits a whole agent's time for the next one (decision 0001: 1 to 4 % of the makespan).
 */
import { RunningMedian } from './median.js';

/** Share of a typical agent's time beyond which an idle slot costs more than it wins. */
const shareOfAgent = 0.05;
/** No person should wonder at a slot that stays empty while work is ready. */
const longestMs = 15_000;
/** Landings are worth waiting for up to this multiple of the time that half of them take. */
const patience = 3;

/** Learns from what it is told how long a landing is worth waiting for. */
export class HoldWindow {
  readonly #agents = new RunningMedian();
  readonly #landings = new RunningMedian();

  /** One that took no time was none: an Issue gave back a slot that it did not need. */
  agentTook(ms: number): void {
    if (ms >= 1) this.#agents.add(ms);
  }

  /** From the end of an Issue's last agent to its integration. */
  landingTook(ms: number): void {
    this.#landings.add(ms);
  }

  /** Counted from the end of the agent; 0 while nothing is known, or when landings take too long to wait for. */
  get ms(): number {
    const limit = Math.min(shareOfAgent * (this.#agents.value ?? 0), longestMs);
    const typical = this.#landings.value;
    if (typical === undefined) return limit;
    // The lower bound is for landings that take no measurable time: they still come after the slot has been freed.
    return typical > limit ? 0 : Math.min(Math.max(patience * typical, limit / 10), limit);
  }
}
