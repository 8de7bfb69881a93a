/**
 * How a run is asked to stop from outside, in files of the machine-local folder.
 *
 * `STOP` (all of the repository) and `STOP.<spec>` are a person's: whatever is there stops the engines and keeps new ones from
 * starting until the person removes it. A request of `giro stop` lies beside a lock and names it by its content, so that it
 * never reaches an engine that came later; the engine answers beside it, so that nobody else writes that file.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { SpecSlug } from '../issue.js';
import { kindOf, readIfExists, sizeOf, writeAtomic } from '../platform/files.js';
import { removeTree } from '../platform/folders.js';
import { printable, shellWord } from '../platform/text.js';

/** What a person laid down to stop giro. */
export interface StopFile {
  readonly path: string;
  readonly name: string;
  /** Its first line; empty: it says nothing. */
  readonly says: string;
  /** The command that takes it away. */
  readonly remove: string;
}

const longestNote = 200;
const largestNote = 64 * 1024;

/** Where a person stops one Spec, or (`null`) all of a repository. */
export function stopPath(commonDir: string, spec: SpecSlug | null): string {
  return join(commonDir, 'giro', spec === null ? 'STOP' : `STOP.${spec}`);
}

/** Finds what forbids a Spec, or (`null`) everything, to run; `null`: nothing does. */
export async function findStopFile(commonDir: string, spec: SpecSlug | null): Promise<StopFile | null> {
  return (await stopFileAt(commonDir, null)) ?? (spec === null ? null : stopFileAt(commonDir, spec));
}

/** Looks for one of the two. */
export async function stopFileAt(commonDir: string, spec: SpecSlug | null): Promise<StopFile | null> {
  const path = stopPath(commonDir, spec);
  const kind = await kindOf(path);
  if (kind === null) return null;
  const readable = kind === 'file' && (await sizeOf(path)) <= largestNote;
  const text = readable ? ((await readIfExists(path))?.toString('utf8') ?? '') : '';
  const says = printable((text.split('\n')[0] ?? '').trim().slice(0, longestNote));
  const quoted = shellWord(path);
  const name = spec === null ? 'STOP' : `STOP.${spec}`;
  return { path, name, says, remove: `${kind === 'folder' ? 'rm -r' : 'rm'} ${quoted}` };
}

/** The lock that a request is about. */
interface Addressed {
  readonly path: string;
  readonly text: string;
}

/** What `giro stop` asks of the holder of a lock. */
export interface StopRequest {
  readonly at: string;
  /** Without the grace for agents. */
  readonly now: boolean;
}

/** Asks the holder of a lock to stop; what was asked before stays, and only becomes more urgent. */
export async function requestStop(lock: Addressed, request: StopRequest): Promise<void> {
  const before = await readStopRequest(lock);
  if (before !== null && (before.now || !request.now)) return;
  const text = JSON.stringify({ format_version: 1, of: nameOf(lock), at: request.at, now: request.now });
  await writeAtomic(requestPath(lock), `${text}\n`);
}

/** Reads what is asked of the holder of a lock; `null`: nothing. */
export async function readStopRequest(lock: Addressed): Promise<StopRequest | null> {
  const value = await readAddressed(requestPath(lock), lock);
  return value === null ? null : { at: textOf(value['at']), now: value['now'] === true };
}

/** Says that the holder of a lock is stopping, and since when. */
export async function answerStop(
  lock: Addressed,
  { at, why }: { readonly at: string; readonly why: string },
): Promise<void> {
  await writeAtomic(answerPath(lock), `${JSON.stringify({ format_version: 1, of: nameOf(lock), at, why })}\n`);
}

/** Reads since when and why the holder of a lock is stopping; `null`: it has not said so. */
export async function readStopAnswer(lock: Addressed): Promise<{ readonly at: string; readonly why: string } | null> {
  const value = await readAddressed(answerPath(lock), lock);
  return value === null ? null : { at: textOf(value['at']), why: textOf(value['why']) };
}

/** Removes what is about this lock, which is given back; or about those that others held before it. */
export async function forgetStop(lock: Addressed, which: 'own' | 'others'): Promise<void> {
  for (const path of [requestPath(lock), answerPath(lock)]) {
    if ((await kindOf(path)) === null) continue;
    const isOwn = (await readAddressed(path, lock)) !== null;
    if (isOwn === (which === 'own')) await removeTree(path);
  }
}

function requestPath({ path }: Addressed): string {
  return path.replace(/json$/, 'stop');
}

function answerPath({ path }: Addressed): string {
  return path.replace(/json$/, 'stopping');
}

function nameOf({ text }: Addressed): string {
  return createHash('sha256').update(text).digest('hex');
}

/** A file that is not about this very lock is no word to its holder. */
async function readAddressed(path: string, lock: Addressed): Promise<Readonly<Record<string, unknown>> | null> {
  if ((await kindOf(path)) !== 'file') return null;
  const value = parseRecord((await readIfExists(path))?.toString('utf8') ?? '');
  return value !== null && value['format_version'] === 1 && value['of'] === nameOf(lock) ? value : null;
}

function parseRecord(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : null;
  } catch {
    return null;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? printable(value) : '';
}
