/**
 * Merges two trees without git, where there is nothing to decide: no side deletes a file (so that nothing can be a rename),
 * and no file is changed on both sides in two ways. What git's own merge gives then is the changes of both.
 */
import type { Oid } from '../issue.js';
import type { EntryChange, Git, TreeTarget } from './git-types.js';
import { treeMode } from './objects.js';

/** Three trees (or commits) to merge. */
export interface ThreeTrees {
  readonly base: Oid;
  readonly ours: Oid;
  readonly theirs: Oid;
}

/** The merged tree; `null` when git has to decide. */
export async function mergeApart(
  git: Pick<Git, 'changedEntries' | 'editTree'>,
  { base, ours, theirs }: ThreeTrees,
): Promise<Oid | null> {
  const edits = new Map<string, TreeTarget>();
  /** False: not so simple. */
  const merge = async (trees: FolderSides, prefix: string): Promise<boolean> => {
    const lefts = byName(await git.changedEntries(trees.base, trees.ours));
    const rights = byName(await git.changedEntries(trees.base, trees.theirs));
    for (const name of new Set([...lefts.keys(), ...rights.keys()])) {
      const [left, right] = [lefts.get(name), rights.get(name)];
      if (left === undefined || right === undefined || isSame(left.is, right.is)) {
        const { was, is } = left ?? right ?? {};
        if (is === undefined || (await losesFiles(git, was, is))) return false;
        if (left === undefined) edits.set(prefix + name, is);
        continue;
      }
      const [was, mine, other] = [folderOf(left.was), folderOf(left.is), folderOf(right.is)];
      if (mine === null || other === null || (left.was !== undefined && was === null)) return false;
      if (!(await merge({ base: was, ours: mine, theirs: other }, `${prefix}${name}/`))) return false;
    }
    return true;
  };
  return (await merge({ base, ours, theirs }, '')) ? git.editTree(ours, edits) : null;
}

interface FolderSides {
  readonly base: Oid | null;
  readonly ours: Oid;
  readonly theirs: Oid;
}

function byName(changes: readonly EntryChange[]): ReadonlyMap<string, EntryChange> {
  return new Map(changes.map((change) => [change.name, change]));
}

function isSame(left: TreeTarget | undefined, right: TreeTarget | undefined): boolean {
  return left?.oid === right?.oid && left?.mode === right?.mode;
}

function folderOf(entry: TreeTarget | undefined): Oid | null {
  return entry?.mode === treeMode ? entry.oid : null;
}

/** Whether something that was there is gone, at the entry itself or below it. */
async function losesFiles(
  git: Pick<Git, 'changedEntries'>,
  was: TreeTarget | undefined,
  is: TreeTarget,
): Promise<boolean> {
  if (was === undefined || isSame(was, is)) return false;
  const [before, after] = [folderOf(was), folderOf(is)];
  if (before === null && after === null) return false;
  if (before === null || after === null) return true;
  for (const change of await git.changedEntries(before, after)) {
    if (change.was === undefined) continue;
    if (change.is === undefined || (await losesFiles(git, change.was, change.is))) return true;
  }
  return false;
}
