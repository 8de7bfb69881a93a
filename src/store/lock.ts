/**
 * One engine per Spec per repository (DESIGN 10).
 *
 * K1 The file is complete the moment it exists (made by `link`).
 * K2 It is taken over only from an owner that is proven dead, by exactly one of the racers.
 * K3 It is never taken from another host or pid namespace, nor from a file that cannot be read.
 * K4 Only its owner removes it.
 */
import { join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { SpecSlug } from '../issue.js';
import { replaceExclusive } from '../platform/exclusive.js';
import { linkExclusive, readIfExists } from '../platform/files.js';
import { listFolder, makeFolder, removeTree } from '../platform/folders.js';
import { isAlive, ownIdentity, parseIdentity, type ProcessIdentity } from '../platform/identity.js';
import { shellWord } from '../platform/text.js';

/** Not exported: nobody else can make a lock. */
const held: unique symbol = Symbol('held');

/** Permission to write a Spec's branches; only `takeLock` makes one. */
export interface RunLock {
  readonly [held]: true;
  readonly spec: SpecSlug;
  readonly path: string;
  /** What the file holds: no other lock holds the same. */
  readonly text: string;
  /** Gives the Spec free for the next engine. */
  release(): Promise<void>;
}

/** What a lock file holds. */
export interface LockFile extends ProcessIdentity {
  readonly format_version: 1;
  readonly spec: string;
  readonly run: string;
  readonly at: string;
}

const attempts = 5;

/** Where the locks are. */
export function locksFolder(commonDir: string): string {
  return join(commonDir, 'giro', 'locks');
}

/** Takes the lock of a Spec, or tells who has it and what to do. `answer`: the short one, of whoever writes an answer. */
export async function takeLock(request: {
  readonly commonDir: string;
  readonly spec: SpecSlug;
  readonly run: string;
  readonly at: string;
  readonly kind?: 'run' | 'answer';
}): Promise<Result<RunLock, Failure>> {
  const folder = locksFolder(request.commonDir);
  const path = join(folder, `${request.spec}${request.kind === 'answer' ? '.answer' : ''}.json`);
  await makeFolder(folder);
  const own: LockFile = { format_version: 1, ...ownIdentity(), spec: request.spec, run: request.run, at: request.at };
  const text = `${JSON.stringify(own)}\n`;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    if (await linkExclusive(path, text)) return ok(lockOf(request.spec, path, text));
    const present = await readIfExists(path);
    if (present === null) continue;
    const refusal = whyNot(path, present, request.spec);
    if (refusal !== null) return failed(refusal);
    if (await replaceExclusive(path, present, text)) return ok(lockOf(request.spec, path, text));
  }
  return failed({ kind: 'locked', message: `somebody else is taking the lock of ${request.spec}`, hint: 'try again' });
}

/** Tells who runs a Spec now; `null` when nobody provably does. */
export async function lockOwner(
  commonDir: string,
  spec: SpecSlug,
): Promise<{ readonly pid: number; readonly host: string } | null> {
  const present = await readIfExists(join(locksFolder(commonDir), `${spec}.json`));
  const owner = present === null ? null : parseLock(present);
  return owner !== null && isAlive(owner) === 'alive' ? { pid: owner.pid, host: owner.host } : null;
}

/** Tells why the lock of a Spec cannot be taken now; `null` when it can. */
export async function whyLocked(commonDir: string, spec: SpecSlug): Promise<Failure | null> {
  const path = join(commonDir, 'giro', 'locks', `${spec}.json`);
  const present = await readIfExists(path);
  return present === null ? null : whyNot(path, present, spec);
}

/** Names the runs that have a lock and are not proven dead; `null` for one whose lock cannot be read. */
export async function runsWithLocks(commonDir: string): Promise<readonly (string | null)[]> {
  const folder = join(commonDir, 'giro', 'locks');
  const runs: (string | null)[] = [];
  for (const { name } of await listFolder(folder)) {
    const present = name.endsWith('.json') ? await readIfExists(join(folder, name)) : null;
    const owner = present === null ? null : parseLock(present);
    if (present !== null && (owner === null || isAlive(owner) !== 'dead')) runs.push(owner?.run ?? null);
  }
  return runs;
}

function lockOf(spec: SpecSlug, path: string, text: string): RunLock {
  return {
    [held]: true,
    spec,
    path,
    text,
    async release(): Promise<void> {
      if ((await readIfExists(path))?.toString('utf8') === text) await removeTree(path);
    },
  };
}

function whyNot(path: string, present: Buffer, spec: SpecSlug): Failure | null {
  const owner = parseLock(present);
  if (owner === null) {
    return {
      kind: 'locked',
      message: `the lock of ${spec} cannot be read: ${path}`,
      hint: `make sure that no giro is running on it, then: rm ${shellWord(path)}`,
    };
  }
  switch (isAlive(owner)) {
    case 'dead':
      return null;
    case 'alive':
      return {
        kind: 'locked',
        message: `giro is already running on ${spec}: process ${String(owner.pid)} on ${owner.host}, since ${owner.at}`,
        hint: `watch it with: giro status ${spec}, stop it with: giro stop ${spec}`,
      };
    case 'unknown':
      return {
        kind: 'locked',
        message: `the lock of ${spec} belongs to process ${String(owner.pid)} on ${owner.host}, which cannot be seen from here`,
        hint: `when it is surely gone: rm ${shellWord(path)}`,
      };
  }
}

/** Reads a lock file; `null`: it is none. */
export function parseLock(bytes: Buffer): LockFile | null {
  const value = parseIdentity(bytes.toString('utf8'));
  return value !== null && isLock(value) ? value : null;
}

function isLock(value: ProcessIdentity & Readonly<Record<string, unknown>>): value is LockFile & typeof value {
  return value['format_version'] === 1 && ['spec', 'run', 'at'].every((name) => typeof value[name] === 'string');
}
