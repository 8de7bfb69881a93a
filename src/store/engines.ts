/**
 * The engines of a repository, as their lock files tell: one for each Spec that is run, and one for each backlog, which holds
 * no Spec between two of them. The file of a backlog excludes nobody.
 */
import { join } from 'node:path';
import { parseSpecSlug, type SpecSlug } from '../issue.js';
import { linkExclusive, readIfExists } from '../platform/files.js';
import { listFolder, makeFolder, removeTree } from '../platform/folders.js';
import { isAlive, ownIdentity } from '../platform/identity.js';
import { locksFolder, parseLock, type LockFile } from './lock.js';

/** A file that an engine holds as long as it runs. */
export interface EngineLock {
  readonly path: string;
  /** What it holds: no other lock holds the same. */
  readonly text: string;
  /** `null`: of a backlog. */
  readonly spec: SpecSlug | null;
  /** `null`: the file cannot be read. */
  readonly owner: LockFile | null;
}

const backlogName = /^backlog\..+\.json$/;

/** Reads the locks of all engines, those that a dead one left too. */
export async function readEngines(commonDir: string): Promise<readonly EngineLock[]> {
  const folder = locksFolder(commonDir);
  const engines: EngineLock[] = [];
  for (const { name, kind } of await listFolder(folder)) {
    const spec = parseSpecSlug(name.replace(/\.json$/, '')) ?? null;
    if (kind !== 'file' || !name.endsWith('.json') || (spec === null && !backlogName.test(name))) continue;
    const bytes = await readIfExists(join(folder, name));
    if (bytes === null) continue;
    engines.push({ path: join(folder, name), text: bytes.toString('utf8'), spec, owner: parseLock(bytes) });
  }
  return engines;
}

/** Says whether a lock is still held as it was: its file has not gone, and is nobody else's now. */
export async function isHeld({ path, text }: Pick<EngineLock, 'path' | 'text'>): Promise<boolean> {
  return (await readIfExists(path))?.toString('utf8') === text;
}

/** Reads the locks that the engine at work on a Spec holds: that of the Spec, and of the backlog it is part of. */
export async function engineLocksOf(commonDir: string, spec: SpecSlug): Promise<readonly EngineLock[]> {
  const engines = await readEngines(commonDir);
  const own = engines.find(
    (engine) => engine.spec === spec && engine.owner !== null && isAlive(engine.owner) === 'alive',
  );
  return own === undefined
    ? []
    : engines.filter(({ spec: of, owner }) => (of ?? spec) === spec && owner?.run === own.owner?.run);
}

/** What a backlog holds while it runs. */
export interface BacklogLock {
  readonly path: string;
  readonly text: string;
  release(): Promise<void>;
}

/** Says that a backlog runs, and removes what dead ones left. */
export async function announceBacklog(request: {
  readonly commonDir: string;
  readonly run: string;
  readonly at: string;
}): Promise<BacklogLock> {
  await makeFolder(locksFolder(request.commonDir));
  for (const { spec, owner, path } of await readEngines(request.commonDir)) {
    if (spec === null && owner !== null && isAlive(owner) === 'dead') await removeTree(path);
  }
  const path = join(locksFolder(request.commonDir), `backlog.${request.run}.json`);
  const own: LockFile = { format_version: 1, ...ownIdentity(), spec: '', run: request.run, at: request.at };
  const text = `${JSON.stringify(own)}\n`;
  await linkExclusive(path, text);
  return {
    path,
    text,
    async release(): Promise<void> {
      if (await isHeld({ path, text })) await removeTree(path);
    },
  };
}
