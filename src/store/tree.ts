/** The two halves of every tree: the code, and `docs/specs/`, which the engine alone writes (DESIGN 4). */
import type { Oid } from '../issue.js';
import { specsFolder } from '../spec.js';
import type { Git } from '../worktree/git-types.js';

/** What the functions here need of git. */
export type TreeGit = Pick<Git, 'editTree' | 'readPath' | 'readCommit' | 'writeBlob' | 'emptyTree'>;

/** Gives a tree without `docs/specs/`: what gates judge and caches are keyed by. */
export async function codeTree(git: TreeGit, tree: Oid): Promise<Oid> {
  return git.editTree(tree, new Map([[specsFolder, null]]));
}

/** Gives the `docs/specs/` of a tree; `null` when it has none. */
export async function specsTree(git: TreeGit, tree: Oid): Promise<Oid | null> {
  const entry = await git.readPath(tree, specsFolder);
  return entry === null || entry.mode !== '040000' ? null : entry.oid;
}

/** Joins a code tree with a `docs/specs/`. */
export async function joinTree(git: TreeGit, code: Oid, specs: Oid | null): Promise<Oid> {
  return git.editTree(code, new Map([[specsFolder, specs === null ? null : { mode: '040000', oid: specs }]]));
}

/** Writes files into a tree; `null` removes one. */
export async function withFiles(
  git: TreeGit,
  tree: Oid,
  files: ReadonlyMap<string, Uint8Array | string | null>,
): Promise<Oid> {
  const edits = new Map<string, { mode: string; oid: Oid } | null>();
  for (const [path, content] of files) {
    edits.set(path, content === null ? null : { mode: '100644', oid: await git.writeBlob(content) });
  }
  return git.editTree(tree, edits);
}
