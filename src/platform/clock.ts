/** Time as a port: everything that waits or stamps gets a `Clock` handed in. */
import { setMaxListeners } from 'node:events';
import { performance } from 'node:perf_hooks';

/** Tells the time and waits. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that never jump; only differences mean something. */
  monotonic(): number;
  /** The time of day as an ISO 8601 text in UTC. */
  iso(): string;
  /** Waits; resolves early, without an error, when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

// A longer delay overflows a 32-bit integer and Node fires it after 1 ms.
const longestTimerMs = 2 ** 31 - 1;

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  iso: () => new Date().toISOString(),
  sleep: async (ms, signal) => {
    let left = ms;
    while (left > longestTimerMs && signal?.aborted !== true) {
      await timer(longestTimerMs, signal);
      left -= longestTimerMs;
    }
    await timer(left, signal);
  },
};

/** Lets any number wait for one signal, as everything in a run does; Node would print a warning at the eleventh. */
export function allowManyListeners(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}

function timer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  if (signal !== undefined) allowManyListeners(signal);
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(handle);
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const handle = setTimeout(finish, Math.max(0, ms));
    signal?.addEventListener('abort', finish);
  });
}
