/**
 * Checkouts for judges and planners: a fresh folder for each use, read-only, without a repository and without anything that
 * set-up or copies would bring. It is nobody's after its use and is removed.
 */
import { join } from 'node:path';
import { failed, ok, type Result } from '../failure.js';
import type { Oid } from '../issue.js';
import { makeFolder, removeTree, walkFolders } from '../platform/folders.js';
import { makeReadOnly } from '../platform/links.js';
import { GitError, type Git } from './git-types.js';
import { removeTraps } from './guard.js';
import type { SetupFailure } from './setup.js';
import type { Slot, Slots } from './slots.js';
import { Trash } from './trash.js';

/** A folder to read in. */
export interface Reading {
  readonly folder: string;
  readonly slot: Slot;
  /** What differs from the tree: changed, removed and new files. */
  changes(): Promise<readonly string[]>;
}

/** The reading checkouts of a run. */
export interface Readings {
  withReading<T>(tree: Oid, use: (reading: Reading) => Promise<T>): Promise<Result<T, SetupFailure>>;
  close(): Promise<void>;
}

/** What they need. */
export interface ReadingPorts {
  readonly git: Pick<Git, 'listTree' | 'readTree' | 'checkOut' | 'changedFiles'>;
  /** A folder for them alone. */
  readonly root: string;
  readonly slots: Slots;
}

/** Makes the reading checkouts of a run. */
export function createReadings(ports: ReadingPorts): Readings {
  const { git, root, slots } = ports;
  const trash = new Trash();
  let opened: Promise<void> | null = null;
  let count = 0;

  const open = async (): Promise<void> => {
    // What a killed run left was made for it alone.
    await removeTree(root);
    await makeFolder(root);
  };

  return {
    async withReading(tree, use) {
      await (opened ??= open());
      const slot = await slots.take();
      count += 1;
      const name = `r${String(count)}`;
      const [folder, index] = [join(root, name), join(root, `${name}.index`)];
      try {
        const filled = await fill(ports.git, { folder, index, tree });
        if (!filled.ok) return filled;
        return ok(await use({ folder, slot, changes: () => changesOf(git, { folder, index, tree }) }));
      } finally {
        await trash.put(root, folder).catch(() => undefined);
        await removeTree(index);
        slots.free(slot);
      }
    },
    async close() {
      await trash.emptied();
      if (opened !== null) await removeTree(root);
    },
  };
}

interface Filled {
  readonly folder: string;
  readonly index: string;
  readonly tree: Oid;
}

async function fill(git: ReadingPorts['git'], { folder, index, tree }: Filled): Promise<Result<void, SetupFailure>> {
  try {
    await makeFolder(folder);
    await git.checkOut(folder, index, tree);
    await makeReadOnly(folder);
    return ok(undefined);
  } catch (error) {
    const known = error instanceof GitError || (error instanceof Error && 'code' in error);
    if (!known) throw error;
    const tail = error instanceof GitError ? error.stderr.trim() : error.message;
    return failed({ kind: 'setup-failed', message: 'a checkout to read in could not be made', tail, log: '' });
  }
}

/** Whatever cannot be looked at any more counts as changed. */
async function changesOf(git: ReadingPorts['git'], { folder, index, tree }: Filled): Promise<readonly string[]> {
  try {
    const added = await newFiles(git, folder, tree);
    await removeTraps(git, folder, tree);
    return [...new Set([...(await git.changedFiles(folder, index)), ...added])].sort();
  } catch (error) {
    if (!(error instanceof GitError || (error instanceof Error && 'code' in error))) throw error;
    return ['.'];
  }
}

async function newFiles(git: ReadingPorts['git'], folder: string, tree: Oid): Promise<readonly string[]> {
  const known = new Set((await git.listTree(tree)).map((file) => file.path));
  const folders = new Set([...known].flatMap(parentsOf));
  const added: string[] = [];
  await walkFolders(folder, (path, entries) => {
    const inside: string[] = [];
    for (const entry of entries ?? []) {
      const inner = path === '' ? entry.name : `${path}/${entry.name}`;
      if (known.has(inner)) continue;
      if (entry.isDirectory() && folders.has(inner)) inside.push(entry.name);
      else added.push(inner);
    }
    return inside;
  });
  return added;
}

function parentsOf(path: string): readonly string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}
