/**
 * Merges two trees without git, where there is nothing to decide: no side deletes a file (so that nothing can be a rename),
 * and no file is changed on both sides in two ways. What git's own merge gives then is the changes of both.
 */
import type { Oid } from '../issue.js';
import type { Git, TreeEntry, TreeTarget } from './git-types.js';
import { treeMode } from './objects.js';

/** Three trees (or commits) to merge. */
export interface ThreeTrees {
  readonly base: Oid;
  readonly ours: Oid;
  readonly theirs: Oid;
}

/** The merged tree; `null` when git has to decide. */
export async function mergeApart(
  git: Pick<Git, 'readTree' | 'editTree'>,
  { base, ours, theirs }: ThreeTrees,
): Promise<Oid | null> {
  const edits = new Map<string, TreeTarget>();
  /** False: not so simple. */
  const merge = async (trees: Sides<Oid | null>, prefix: string): Promise<boolean> => {
    const sides = await entriesOf(git, trees);
    for (const name of new Set([...sides.base.keys(), ...sides.ours.keys(), ...sides.theirs.keys()])) {
      const [was, mine, other] = [sides.base.get(name), sides.ours.get(name), sides.theirs.get(name)];
      if (isSame(mine, other) && isSame(was, mine)) continue;
      if (isSame(was, mine)) {
        if (other === undefined || (await losesFiles(git, was, other))) return false;
        edits.set(prefix + name, { mode: other.mode, oid: other.oid });
      } else if (isSame(was, other) || isSame(mine, other)) {
        if (mine === undefined || (await losesFiles(git, was, mine))) return false;
      } else {
        const below = { base: folderOf(was), ours: folderOf(mine), theirs: folderOf(other) };
        if (below.ours === null || below.theirs === null || (was !== undefined && below.base === null)) return false;
        if (!(await merge(below, `${prefix}${name}/`))) return false;
      }
    }
    return true;
  };
  return (await merge({ base, ours, theirs }, '')) ? git.editTree(ours, edits) : null;
}

interface Sides<T> {
  readonly base: T;
  readonly ours: T;
  readonly theirs: T;
}

type Entries = ReadonlyMap<string, TreeEntry>;

async function entriesOf(git: Pick<Git, 'readTree'>, trees: Sides<Oid | null>): Promise<Sides<Entries>> {
  const read = (tree: Oid | null): Promise<Entries> => namesOf(git, tree);
  const [base, ours, theirs] = await Promise.all([read(trees.base), read(trees.ours), read(trees.theirs)]);
  return { base, ours, theirs };
}

async function namesOf(git: Pick<Git, 'readTree'>, tree: Oid | null): Promise<Entries> {
  return new Map((tree === null ? [] : await git.readTree(tree)).map((entry) => [entry.name, entry]));
}

function isSame(left: TreeTarget | undefined, right: TreeTarget | undefined): boolean {
  return left?.oid === right?.oid && left?.mode === right?.mode;
}

function folderOf(entry: TreeTarget | undefined): Oid | null {
  return entry?.mode === treeMode ? entry.oid : null;
}

/** Whether something that was there is gone, at the entry itself or below it. */
async function losesFiles(git: Pick<Git, 'readTree'>, was: TreeTarget | undefined, is: TreeTarget): Promise<boolean> {
  if (was === undefined || isSame(was, is)) return false;
  const [before, after] = [folderOf(was), folderOf(is)];
  if (before === null && after === null) return false;
  if (before === null || after === null) return true;
  const entries = await namesOf(git, after);
  for (const old of await git.readTree(before)) {
    const now = entries.get(old.name);
    if (now === undefined || (await losesFiles(git, old, now))) return true;
  }
  return false;
}
