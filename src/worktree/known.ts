/** Whether the content of a folder is safe elsewhere, decided by comparing trees. */
import type { Oid } from '../issue.js';
import { specsFolder } from '../spec.js';
import { GitError, type Git } from './git-types.js';
import { treeMode } from './objects.js';

/**
 * Whether a tree is one of the known ones. Its `docs/specs/` may be that of another one: the engine writes that part itself
 * in every commit.
 */
export async function isKnownTree(
  git: Pick<Git, 'editTree' | 'readPath'>,
  tree: Oid,
  known: readonly Oid[],
): Promise<boolean> {
  if (known.includes(tree)) return true;
  const [code, specs] = await halves(git, tree);
  const others = await Promise.all([...new Set(known)].map((other) => halves(git, other)));
  return others.some(([other]) => other === code) && others.some(([, other]) => other === specs);
}

async function halves(git: Pick<Git, 'editTree' | 'readPath'>, tree: Oid): Promise<readonly [Oid, Oid | null]> {
  const code = await git.editTree(tree, new Map([[specsFolder, null]]));
  return [code, (await git.readPath(tree, specsFolder))?.oid ?? null];
}

/** Whether every file of a tree is, at its path, also in one of the known ones: what a half-made checkout looks like. */
export async function holdsOnly(git: Pick<Git, 'readTree'>, tree: Oid, known: readonly Oid[]): Promise<boolean> {
  if (known.includes(tree)) return true;
  const others = await Promise.all(known.map((oid) => git.readTree(oid)));
  for (const { name, mode, oid } of await git.readTree(tree)) {
    const same = others.flatMap((entries) => entries.filter((entry) => entry.name === name));
    if (same.some((entry) => entry.oid === oid && entry.mode === mode)) continue;
    const folders = same.filter((entry) => entry.mode === treeMode).map((entry) => entry.oid);
    if (mode !== treeMode || !(await holdsOnly(git, oid, folders))) return false;
  }
  return true;
}

/** Those of the trees that are still there: what was only shown may have been collected as garbage since, and is no help then. */
export async function presentTrees(git: Pick<Git, 'readTree'>, trees: readonly Oid[]): Promise<readonly Oid[]> {
  const present: Oid[] = [];
  for (const tree of trees) {
    try {
      await git.readTree(tree);
      present.push(tree);
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
    }
  }
  return present;
}
