/**
 * Process groups. A child that leads its own group is ended together with everything it started that did not leave.
 *
 * Signalling `-pid` is safe while the leader is not reaped, and after that while the group has a member: the kernel does not
 * give a number away that still names a group. Once a group has been seen empty its number is never signalled again; what
 * remains is the moment between two looks, in which the system would have to use up all its process numbers.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from './clock.js';
import { parseProcessStat } from './identity.js';

/** Sends a signal to a group; false when nobody is left who could get it. */
export function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-leader, signal);
    return true;
  } catch {
    // ESRCH: empty. EPERM: what is left changed its user (or, on macOS, is a zombie): beyond reach either way.
    return false;
  }
}

/** How `endGroup` ends a group. */
export interface GroupEnding {
  readonly leader: number;
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  readonly clock: Clock;
}

/** Ends every member: SIGTERM, the grace, SIGKILL; resolves when none is alive. */
export async function endGroup({ leader, graceMs, clock }: GroupEnding): Promise<void> {
  if (!signalGroup(leader, 'SIGTERM')) return;
  // A stopped process would see the SIGTERM only when it is continued.
  signalGroup(leader, 'SIGCONT');
  const over = new AbortController();
  const emptied = untilEmpty(leader, over.signal);
  try {
    const ended = await Promise.race([emptied.then(() => true), clock.sleep(graceMs, over.signal).then(() => false)]);
    if (ended || !signalGroup(leader, 'SIGKILL')) return;
    // Only a process stuck in the kernel outlives this; nothing more can be done about it.
    await Promise.race([emptied, pause(killWaitMs, undefined, { signal: over.signal }).catch(() => undefined)]);
  } finally {
    over.abort();
  }
}

const killWaitMs = 2_000;

/** Gives the rest of a group a moment to end by itself, as the tail of a pipeline does; true when it has. */
export async function emptiesWithin(leader: number, ms: number): Promise<boolean> {
  if (!signalGroup(leader, 0)) return true;
  const over = AbortSignal.timeout(ms);
  await untilEmpty(leader, over);
  return !over.aborted;
}

/** Nobody tells when the last member of a group ends, so it is looked at: often at first, then ten times a second. */
async function untilEmpty(leader: number, signal: AbortSignal): Promise<void> {
  for (let delay = 2; !signal.aborted; delay = Math.min(delay * 2, 100)) {
    if (!signalGroup(leader, 0)) return;
    if (delay >= 16 && !hasLivingMember(leader)) return;
    await pause(delay, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * Where nobody reaps orphans (a container whose first process is no init), a dead member stays as a zombie for ever and
 * still counts for `kill`. Linux shows who is really alive; elsewhere `kill` has the last word.
 */
function hasLivingMember(leader: number): boolean {
  return process.platform !== 'linux' || livingGroups().has(leader);
}

let seen: { readonly at: number; readonly groups: ReadonlySet<number> } = { at: -Infinity, groups: new Set() };

/** One walk over /proc serves every group that is being ended at the same time. */
function livingGroups(): ReadonlySet<number> {
  const now = performance.now();
  if (now - seen.at > 20) seen = { at: now, groups: readLivingGroups() };
  return seen.groups;
}

function readLivingGroups(): ReadonlySet<number> {
  const groups = new Set<number>();
  for (const name of readdirSync('/proc')) {
    if (!/^[0-9]+$/.test(name)) continue;
    const stat = readStat(name);
    if (stat !== null && stat.state !== 'Z' && stat.state !== 'X') groups.add(stat.group);
  }
  return groups;
}

function readStat(pid: string): ReturnType<typeof parseProcessStat> | null {
  try {
    return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return null; // Ended while we looked.
  }
}
