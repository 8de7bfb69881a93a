/**
 * Ends what took itself out of the process group of a run, as daemons do; found by what only that run has in its environment,
 * and by its cgroup.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from './clock.js';
import type { Cell } from './confinement.js';
import { straysOf, type GroupMember } from './members.js';

/** How `endStrays` ends what it finds. */
export interface StrayEnding {
  /** Lines of the environment, `NAME=value`, that only this run has together. */
  readonly mark: readonly string[];
  readonly cell: Cell | null;
  /** What ends by itself within this time is not meant. */
  readonly settleMs: number;
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  readonly clock: Clock;
}

/** Ends every process that carries the mark: SIGTERM, the grace, SIGKILL. Gives what was there. */
export async function endStrays(request: StrayEnding): Promise<readonly GroupMember[]> {
  const { mark, cell, settleMs, graceMs, clock } = request;
  const find = () => straysOf(mark, cell?.members() ?? null);
  if (find().length === 0 || (await areGone(find, AbortSignal.timeout(settleMs)))) return [];
  const { found } = await endFound({ find, graceMs, clock, killAll: () => cell?.kill() });
  return found.map(({ command, serves }) => ({ command, serves }));
}

/** What ended, and what cannot be ended. */
export interface EndedFound<T> {
  readonly found: readonly T[];
  readonly left: readonly T[];
}

/**
 * Ends everything that `find` finds: SIGTERM, the grace, SIGKILL. It is looked up anew before each signal: what is there may
 * have started more, and the number of one that is gone may be another's by now.
 */
export async function endFound<T extends { readonly pid: number }>(request: {
  readonly find: () => readonly T[];
  readonly graceMs: number;
  readonly clock: Clock;
  /** Kills all of it in another way, as well. */
  readonly killAll?: () => void;
}): Promise<EndedFound<T>> {
  const { find, graceMs, clock, killAll } = request;
  const found = find();
  if (found.length === 0) return { found, left: [] };
  send(found, 'SIGTERM');
  // A stopped process would see the SIGTERM only when it is continued.
  send(found, 'SIGCONT');
  const over = new AbortController();
  try {
    const gone = areGone(find, over.signal);
    if (await Promise.race([gone, clock.sleep(graceMs, over.signal).then(() => false)])) return { found, left: [] };
  } finally {
    over.abort();
  }
  const killing = AbortSignal.timeout(killWaitMs);
  const kill = (): readonly T[] => {
    const left = find();
    if (left.length > 0) killAll?.();
    send(left, 'SIGKILL');
    return left;
  };
  return (await areGone(kill, killing)) ? { found, left: [] } : { found, left: find() };
}

/** Kills what is found, without a wait; a second look is for what it started in between. */
export function killAtOnce(find: () => readonly { readonly pid: number }[]): void {
  send(find(), 'SIGKILL');
  send(find(), 'SIGKILL');
}

/** Only a process stuck in the kernel, or one that starts others without end, outlives this. */
const killWaitMs = 2_000;

function send(found: readonly { readonly pid: number }[], signal: NodeJS.Signals): void {
  for (const { pid } of found) {
    try {
      process.kill(pid, signal);
    } catch {
      // Gone in this moment, or of another user by now.
    }
  }
}

async function areGone(find: () => readonly unknown[], signal: AbortSignal): Promise<boolean> {
  for (let delay = 5; !signal.aborted; delay = Math.min(delay * 2, 100)) {
    if (find().length === 0) return true;
    await pause(delay, undefined, { signal }).catch(() => undefined);
  }
  return false;
}
