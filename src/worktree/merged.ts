/** Finds out what a person merged in the worktree of an Issue, committed there or not. */
import type { Oid } from '../issue.js';
import type { StandsOn } from './admin.js';
import { GitError, type Git } from './git-types.js';

/** What is asked. */
export interface MergedRequest {
  readonly stands: StandsOn;
  /** What the Issue's branch contains of the integration branch already. */
  readonly base: Oid;
  /** The integration branch. */
  readonly tip: Oid;
  /** The code on the Issue's branch, and that of the folder. */
  readonly own: Oid;
  readonly code: Oid;
  /** The code of any commit. */
  readonly codeOf: (commit: Oid) => Promise<Oid>;
}

/**
 * Gives the newest commit of the integration branch that the files of a folder contain; `null`: none but the base.
 *
 * A commit of exactly these files says so itself. Otherwise git's word that a merge goes on, or that HEAD is somewhere, is not
 * enough, since HEAD can be moved without the files: no file that landed may be as it was before it landed, or as the branch has it.
 */
export async function mergedThere(
  git: Pick<Git, 'mergeBase' | 'isAncestor' | 'readPath' | 'diffTrees'>,
  request: MergedRequest,
): Promise<Oid | null> {
  const { stands, base, tip, code, codeOf } = request;
  const { head } = stands;
  for (const commit of [...stands.merging, ...(head === null ? [] : [head])]) {
    const onto = await forkOf(git, commit, tip);
    if (onto === null || onto === base || !(await git.isAncestor(base, onto))) continue;
    const isCommitted = commit === head && (await codeOf(head)) === code;
    if (isCommitted || (await contains(git, request, await codeOf(onto)))) return onto;
  }
  return null;
}

/** Who writes in a worktree can write the name of no commit, too. */
async function forkOf(git: Pick<Git, 'mergeBase'>, commit: Oid, tip: Oid): Promise<Oid | null> {
  try {
    return await git.mergeBase(commit, tip);
  } catch (error) {
    if (error instanceof GitError) return null;
    throw error;
  }
}

async function contains(
  git: Pick<Git, 'readPath' | 'diffTrees'>,
  { base, own, code, codeOf }: MergedRequest,
  landed: Oid,
): Promise<boolean> {
  const before = await codeOf(base);
  for (const { path } of await git.diffTrees(before, landed)) {
    const [was, mine, theirs, is] = await Promise.all(
      [before, own, landed, code].map(async (tree) => (await git.readPath(tree, path))?.oid ?? null),
    );
    if (is !== theirs && (is === was || is === mine)) return false;
  }
  return true;
}
