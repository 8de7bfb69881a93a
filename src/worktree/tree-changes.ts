/** How one tree differs from another, as far as giro itself can bring files from the one to the other. */
import type { Oid } from '../issue.js';
import type { Git, TreeEntry } from './git-types.js';
import { isGitName } from './guard.js';
import { encodeName, isSafeComponent, treeMode } from './objects.js';

/** A file that is not the same in both trees. */
export interface TreeChange {
  readonly path: string;
  /** The same as git holds it. */
  readonly bytes: Buffer;
  readonly from: TreeEntry | null;
  readonly to: TreeEntry | null;
}

/** What differs, in git's order. */
export interface TreeChanges {
  readonly files: readonly TreeChange[];
  /** The folders that differ and are in both, by path; empty for the top. Null: in one only. */
  readonly folders: ReadonlyMap<string, Oid | null>;
}

/** Beyond it git is as quick. */
const maxChanges = 64;
const plainModes: ReadonlySet<string> = new Set(['100644', '100755']);

/**
 * Compares two trees; null when there is more to do than to write the blobs of a few plain files: many, links, submodules,
 * names that may mean something else to a file system, or attributes, which can have git convert what it writes.
 */
export async function changesBetween(git: Pick<Git, 'readTree'>, from: Oid, to: Oid): Promise<TreeChanges | null> {
  const files: TreeChange[] = [];
  const folders = new Map<string, Oid | null>();
  const visit = async (left: Oid | null, right: Oid | null, prefix: string): Promise<boolean> => {
    folders.set(prefix.slice(0, -1), left === null ? null : right);
    const [before, after] = await Promise.all(
      [left, right].map(async (oid) => (oid === null ? [] : git.readTree(oid))),
    );
    const pairs = pairUp(before ?? [], after ?? []);
    if (pairs === null) return false;
    for (const [name, [old, now]] of pairs) {
      const path = prefix + name;
      if (old?.oid === now?.oid && old?.mode === now?.mode) continue;
      if (!isSafeComponent(name) || isGitName(name) || files.length >= maxChanges) return false;
      const [below, above] = [old, now].map((entry) => (entry?.mode === treeMode ? entry.oid : null));
      if ((below ?? above ?? null) !== null && !(await visit(below ?? null, above ?? null, `${path}/`))) return false;
      const [fileBefore, fileNow] = [old, now].map((entry) => (entry?.mode === treeMode ? null : (entry ?? null)));
      if (![fileBefore, fileNow].every((entry) => !entry || plainModes.has(entry.mode))) return false;
      if (!fileBefore && !fileNow) continue;
      files.push({ path, bytes: encodeName(path), from: fileBefore ?? null, to: fileNow ?? null });
    }
    return true;
  };
  if (from !== to && !(await visit(from, to, ''))) return null;
  if (files.some(({ path }) => /[\ud800-\udfff]/.test(path))) return null;
  files.sort((left, right) => Buffer.compare(left.bytes, right.bytes));
  return { files, folders };
}

type Pair = readonly [TreeEntry | undefined, TreeEntry | undefined];

/** Entries by name; null when there are attributes. */
function pairUp(before: readonly TreeEntry[], after: readonly TreeEntry[]): ReadonlyMap<string, Pair> | null {
  const pairs = new Map<string, Pair>();
  for (const entry of before) pairs.set(entry.name, [entry, undefined]);
  for (const entry of after) pairs.set(entry.name, [pairs.get(entry.name)?.[0], entry]);
  return pairs.has('.gitattributes') ? null : pairs;
}
