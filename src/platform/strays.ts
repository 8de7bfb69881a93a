/** Ends what took itself out of the process group of a run, as daemons do; found by what only that run has in its environment. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from './clock.js';
import { straysOf, type GroupMember } from './members.js';

/** How `endStrays` ends what it finds. */
export interface StrayEnding {
  /** Lines of the environment, `NAME=value`, that only this run has together. */
  readonly mark: readonly string[];
  /** What ends by itself within this time is not meant. */
  readonly settleMs: number;
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  readonly clock: Clock;
}

/** Ends every process that carries the mark: SIGTERM, the grace, SIGKILL. Gives what was there. */
export async function endStrays({ mark, settleMs, graceMs, clock }: StrayEnding): Promise<readonly GroupMember[]> {
  if (straysOf(mark).length === 0 || (await areGone(mark, AbortSignal.timeout(settleMs)))) return [];
  const found = straysOf(mark);
  send(mark, 'SIGTERM');
  const over = new AbortController();
  try {
    const gone = areGone(mark, over.signal);
    await Promise.race([gone, clock.sleep(graceMs, over.signal)]);
    send(mark, 'SIGKILL');
  } finally {
    over.abort();
  }
  return found.map(({ command, serves }) => ({ command, serves }));
}

/** Looked up anew each time: the number of one that is gone may be another's by now. */
function send(mark: readonly string[], signal: NodeJS.Signals): void {
  for (const { pid } of straysOf(mark)) {
    try {
      process.kill(pid, signal);
    } catch {
      // Gone in this moment.
    }
  }
}

async function areGone(mark: readonly string[], signal: AbortSignal): Promise<boolean> {
  for (let delay = 5; !signal.aborted; delay = Math.min(delay * 2, 100)) {
    if (straysOf(mark).length === 0) return true;
    await pause(delay, undefined, { signal }).catch(() => undefined);
  }
  return false;
}
