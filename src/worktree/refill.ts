/**
 * Brings a folder from one tree to another by giro's own hand, where git would read and write a list of all files for the
 * sake of one that differs.
 *
 * 1. Only files that differ are touched, and only when the disk still says of each what the index says, or has nothing
 *    where a new one goes. Whatever is not plain is left to git, before anything is touched.
 * 2. The index is dated when the folder was last compared with it. Git does not trust what the disk says of files that are
 *    not older than the index; dated so, it trusts nothing that it did not compare itself.
 */
import { dirname, join } from 'node:path';
import type { Oid } from '../issue.js';
import { readIfExists, writeAtomic } from '../platform/files.js';
import { makeFolder, removeTree } from '../platform/folders.js';
import { createStamped, removeEmptyFolder, stampOf, type FileStamp } from '../platform/stamps.js';
import type { Git } from './git-types.js';
import { editIndex, indexEntry, readIndex, type IndexFile } from './index-file.js';
import type { IndexTree } from './index-trees.js';
import { changesBetween, type TreeChange, type TreeChanges } from './tree-changes.js';

/** What to refill. */
export interface Refilling {
  readonly folder: string;
  readonly index: string;
  /** What the index has. */
  readonly from: Oid;
  readonly to: Oid;
  /** When git last saw that the folder is as the index says, by the clock of its disk. */
  readonly seenAt: number;
}

/** What refilling needs of a repository. */
export type RefillGit = Pick<Git, 'hash' | 'readTree' | 'readBlob'>;

/** Refills a folder; false when git has to, which copes with whatever this may have left half-done. */
export async function refill(git: RefillGit, request: Refilling): Promise<boolean> {
  // Names fold together on the usual file system there.
  if (process.platform === 'darwin') return false;
  const { folder, from, to } = request;
  const changes = await changesBetween(git, from, to);
  const data = changes === null ? null : await readIfExists(request.index);
  if (changes === null || data === null) return false;
  const index = readIndex(
    data,
    git.hash,
    changes.files.map(({ bytes }) => bytes),
  );
  if (index?.trees.oid !== from) return false;
  const { files } = changes;
  if (from === to) return true;
  if (!(await mayChange(folder, files, index))) return false;
  const contents = await Promise.all(files.map(async ({ to }) => (to === null ? null : git.readBlob(to.oid))));
  try {
    const entries = await write(folder, files, contents);
    const next = editIndex(index, entries, treesAfter(index.trees, changes));
    await writeAtomic(request.index, next, { sync: false, modifiedAt: request.seenAt });
    return true;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    return false;
  }
}

/** Whether each file is on the disk as the index has it, in a real folder. */
async function mayChange(folder: string, files: readonly TreeChange[], index: IndexFile): Promise<boolean> {
  const seen = new Set<string>(['.']);
  for (const [at, { path, from }] of files.entries()) {
    if (!(await isBelowFolders(folder, path, seen))) return false;
    const stamp = await stampOf(join(folder, path));
    const entry = index.places[at]?.entry ?? null;
    if (from === null || entry === null || stamp === null) {
      if (from !== null || entry !== null || stamp !== null) return false;
      continue;
    }
    const mode = stamp.isExecutable ? '100755' : '100644';
    if (!stamp.isFile || mode !== from.mode) return false;
    if (!entry.subarray(0, entry.length - 2).equals(Buffer.concat([statOf(stamp, mode), Buffer.from(from.oid, 'hex')])))
      return false;
  }
  return true;
}

/** Whether all that is above a path is a folder, or not there. */
async function isBelowFolders(folder: string, path: string, seen: Set<string>): Promise<boolean> {
  const above = dirname(path);
  if (seen.has(above)) return true;
  if (!(await isBelowFolders(folder, above, seen))) return false;
  seen.add(above);
  return (await stampOf(join(folder, above)))?.isFolder !== false;
}

/** Makes the files so, and gives their new entries. */
async function write(
  folder: string,
  files: readonly TreeChange[],
  contents: readonly (Buffer | null)[],
): Promise<readonly (Buffer | null)[]> {
  for (const { path, from, to } of files) {
    if (from !== null) await removeTree(join(folder, path));
    if (to === null) await removeEmptyAbove(folder, path);
  }
  const entries: (Buffer | null)[] = [];
  for (const [at, { path, bytes, to }] of files.entries()) {
    const content = contents[at] ?? null;
    if (to === null || content === null) entries.push(null);
    else {
      const file = join(folder, path);
      await makeFolder(dirname(file));
      const stamp = await createStamped(file, content, to.mode === '100755');
      entries.push(indexEntry(statOf(stamp, to.mode), to.oid, bytes));
    }
  }
  return entries;
}

async function removeEmptyAbove(folder: string, path: string): Promise<void> {
  for (let above = dirname(path); above !== '.'; above = dirname(above)) {
    if (!(await removeEmptyFolder(join(folder, above)))) return;
  }
}

/** As git keeps it: each number cut to 32 bits, and of the mode what it distinguishes. */
function statOf(stamp: FileStamp, mode: string): Buffer {
  const { ctimeNs, mtimeNs, dev, ino, uid, gid, size } = stamp;
  const second = 1_000_000_000n;
  const times = [ctimeNs / second, ctimeNs % second, mtimeNs / second, mtimeNs % second];
  const stat = Buffer.alloc(40);
  for (const [at, value] of [...times, dev, ino, BigInt(Number.parseInt(mode, 8)), uid, gid, size].entries()) {
    stat.writeUInt32BE(Number(BigInt.asUintN(32, value)), at * 4);
  }
  return stat;
}

/** The trees of the new entries; those above a folder that came or went are left for git to name. */
function treesAfter(top: IndexTree, { files, folders }: TreeChanges): IndexTree {
  const after = (tree: IndexTree, path: string, prefix: string): IndexTree => {
    if (!folders.has(path)) return tree;
    const changed = files.filter((file) => file.path.startsWith(prefix));
    const grown = changed.reduce((sum, { from, to }) => sum + (to === null ? 0 : 1) - (from === null ? 0 : 1), 0);
    const cameOrWent = [...folders].some(([folder, oid]) => oid === null && `${folder}/`.startsWith(prefix));
    const below = tree.below
      .map((one) => ({ one, inner: prefix + Buffer.from(one.name, 'latin1').toString() }))
      .filter(({ inner }) => folders.get(inner) !== null)
      .map(({ one, inner }) => after(one, inner, `${inner}/`));
    const oid = folders.get(path) ?? null;
    return cameOrWent || oid === null || tree.count < 0
      ? { name: tree.name, count: -1, oid: '', below }
      : { name: tree.name, count: tree.count + grown, oid, below };
  };
  return after(top, '', '');
}
