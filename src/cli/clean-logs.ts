/** Finds what giro keeps below `<git common dir>/giro/` for people and for speed: logs of runs, and remembered passes. */
import { join } from 'node:path';
import { bytesOnDisk } from '../platform/disk.js';
import { formatDuration } from '../platform/duration.js';
import { kindOf } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import { stampOf } from '../platform/links.js';
import { runsWithLocks } from '../store/lock.js';
import { goes, stays, type Found } from './clean-items.js';

/** What is asked for. */
export interface LogsRequest {
  readonly commonDir: string;
  /** The folder of this command itself. */
  readonly own: string;
  /** Logs that nobody wrote to for so long may go; `null`: none. */
  readonly olderThanMs: number | null;
  /** Remembered passes may go. */
  readonly passes: boolean;
  readonly now: number;
}

/** Finds logs and passes. */
export async function findLogs(request: LogsRequest): Promise<readonly Found[]> {
  const running = await runsWithLocks(request.commonDir);
  return [...(await runFolders(request, running)), ...(await passFolder(request, running))];
}

type Running = readonly (string | null)[];

async function runFolders(request: LogsRequest, running: Running): Promise<readonly Found[]> {
  const { commonDir, olderThanMs, now } = request;
  const root = join(commonDir, 'giro', 'runs');
  const found: Found[] = [];
  const young: { readonly bytes: number }[] = [];
  for (const { name, kind } of await listFolder(root)) {
    if (kind !== 'folder' || name === request.own) continue;
    const path = join(root, name);
    const fields = { kind: 'logs', spec: null, name: path, bytes: await bytesOnDisk(path) } as const;
    const age = now - (await writtenAt(path));
    // Without its name in a lock that can be read, any run may be the one that is going on.
    if (running.includes(name) || running.includes(null)) found.push(stays({ ...fields, why: 'the run is going on' }));
    else if (olderThanMs === null || age < olderThanMs) young.push(fields);
    else found.push(goes({ ...fields, why: `logs of a run, ${formatDuration(age)} old` }, { kind: 'folder', path }));
  }
  if (young.length === 0) return found;
  const what = young.length === 1 ? 'logs of one run' : `logs of ${String(young.length)} runs`;
  const why = olderThanMs === null ? what : `${what}, younger than that`;
  const bytes = young.reduce((sum, one) => sum + one.bytes, 0);
  const hint = olderThanMs === null ? { hint: 'giro clean --logs 30d takes those that are older than 30 days' } : {};
  return [...found, stays({ kind: 'logs', spec: null, name: root, bytes, why, ...hint })];
}

/** When somebody wrote to a run folder last: to its events, or into it. */
async function writtenAt(path: string): Promise<number> {
  const stamps = await Promise.all([path, join(path, 'events.ndjson')].map(stampOf));
  return Math.max(...stamps.map((stamp) => stamp?.modifiedMs ?? 0));
}

async function passFolder({ commonDir, passes }: LogsRequest, running: Running): Promise<readonly Found[]> {
  const path = join(commonDir, 'giro', 'verdicts');
  if ((await kindOf(path)) !== 'folder' || (await listFolder(path)).length === 0) return [];
  const fields = { kind: 'passes', spec: null, name: path, bytes: await bytesOnDisk(path) } as const;
  const why = 'passes of gates that need not be paid for again';
  if (!passes) return [stays({ ...fields, why, hint: 'giro clean --passes takes them' })];
  if (running.length > 0) return [stays({ ...fields, why: `${why}, and a giro is running` })];
  return [goes({ ...fields, why: 'remembered passes; the next run pays for its gates' }, { kind: 'folder', path })];
}
