/**
 * The pause that everybody takes who works on an account whose usage limit is reached (DESIGN 5).
 *
 * Without it the Issues of a Spec would run into the limit one after another, each in a worktree that was made for nothing,
 * until all of them have asked a person about the same thing.
 */
import type { Emit } from '../event.js';
import type { Clock } from '../platform/clock.js';

/** Whether agents may be started now. */
export class Parking {
  readonly #clock: Clock;
  #until = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True: nobody is to start an agent. */
  get isClosed(): boolean {
    return this.#clock.monotonic() < this.#until;
  }

  /** Starts no agent for so long; true when that is the first to be heard of it. Never shortens a pause. */
  park(ms: number): boolean {
    const wasClosed = this.isClosed;
    this.#until = Math.max(this.#until, this.#clock.monotonic() + ms);
    return !wasClosed;
  }

  /** Resolves when agents may be started again, or at an abort. */
  async over(signal: AbortSignal): Promise<void> {
    while (this.isClosed && !signal.aborted) await this.#clock.sleep(this.#until - this.#clock.monotonic(), signal);
  }
}

/** What whoever runs agents needs to take part in the pause. */
export interface ParkingPorts {
  readonly parking: Parking;
  readonly clock: Clock;
  readonly jitter: () => number;
  readonly emit: Emit;
}

/** Starts the pause of a usage limit, and says so once. `failures`: in a row, with this one. */
export function park(
  ports: ParkingPorts,
  limit: { readonly reason: string; readonly until?: string; readonly failures: number },
): void {
  const inMs = pauseMs(ports, { failures: limit.failures, until: limit.until });
  if (!ports.parking.park(inMs)) return;
  const until = new Date(ports.clock.now() + inMs).toISOString();
  const message = `${limit.reason}; no agent is started before ${until}`;
  ports.emit({ type: 'run.notice', level: 'warning', message });
}

/** Grows with the failures in a row; `until`: when it says that it can be had again. */
export function pauseMs(
  ports: { readonly clock: Clock; readonly jitter: () => number },
  { failures, until }: { readonly failures: number; readonly until: string | undefined },
): number {
  const backoffMs = Math.round(Math.min(60_000, 500 * 2 ** failures) * (0.5 + ports.jitter()));
  const parkedMs = until === undefined ? 0 : Math.min(Date.parse(until) - ports.clock.now(), longestParkMs);
  return Math.max(backoffMs, parkedMs);
}

const longestParkMs = 24 * 60 * 60 * 1000;
