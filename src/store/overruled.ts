/** Conflicts that were not resolved but overruled: with the one side as a whole, what the other one has is gone. */
import type { Oid } from '../issue.js';
import type { Git } from '../worktree/git-types.js';
import { codeTree } from './tree.js';
import { checkpointOf, trailer } from './trailers.js';

/** The code trees of a conflict. */
export interface Conflict {
  readonly own: Oid;
  readonly landed: Oid;
  readonly files: readonly string[];
}

/** Names the files in which `code` has the own version whole, and with it not all that landed. */
export async function overruledIn(git: Git, { own, landed, files }: Conflict, code: Oid): Promise<readonly string[]> {
  const overruled: string[] = [];
  for (const file of files) {
    const mine = await git.readPath(own, file);
    const theirs = await git.readPath(landed, file);
    if (mine === null || theirs === null) continue;
    if ((await git.readPath(code, file))?.oid !== mine.oid) continue;
    if (await lacksLines(git, { whole: mine.oid, part: theirs.oid })) overruled.push(file);
  }
  return overruled;
}

/**
 * Finds the conflict that an attempt merged with its marks left in the files, so that whoever takes them out resolves it;
 * `null`: the newest merge of the branch has none.
 */
export async function markedConflict(git: Git, branch: Oid): Promise<Conflict | null> {
  for (let next: Oid | undefined = branch; next !== undefined;) {
    const { message, tree, parents } = await git.readCommit(next);
    // The commits of the integration branch do not tell their tree.
    if (checkpointOf(message) !== undefined && trailer(message, 'Giro-Tree') === undefined) return null;
    const [before, theirs]: readonly (Oid | undefined)[] = parents;
    if (before !== undefined && theirs !== undefined) {
      const [own, landed] = [await codeOf(git, before), await codeOf(git, theirs)];
      const marked = await markedFiles(git, landed, await codeTree(git, tree));
      const carried = await markedFiles(git, landed, own);
      const files = marked.filter((file) => !carried.includes(file));
      if (files.length > 0) return { own, landed, files };
      if (marked.length === 0) return null;
    }
    next = before;
  }
  return null;
}

async function codeOf(git: Git, commit: Oid): Promise<Oid> {
  return codeTree(git, (await git.readCommit(commit)).tree);
}

/** Names the files with conflict marks that another tree does not have so. */
async function markedFiles(git: Git, other: Oid, code: Oid): Promise<readonly string[]> {
  const files: string[] = [];
  for (const { path, newOid, binary } of await git.diffTrees(other, code)) {
    if (newOid === null || binary) continue;
    // A nested conflict may be half taken apart.
    if ((await linesOf(git, newOid)).some((line) => line.startsWith('<<<<<<< ') || line.startsWith('>>>>>>> ')))
      files.push(path);
  }
  return files;
}

/** Whether some line of `part` is missing in `whole`; blank lines and indents say nothing. */
async function lacksLines(git: Git, { whole, part }: { readonly whole: Oid; readonly part: Oid }): Promise<boolean> {
  const there = new Set(await linesOf(git, whole));
  return (await linesOf(git, part)).some((line) => line !== '' && !there.has(line));
}

async function linesOf(git: Git, blob: Oid): Promise<readonly string[]> {
  const text = (await git.readBlob(blob)).toString('latin1');
  return text.split('\n').map((line) => line.trim());
}
