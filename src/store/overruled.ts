/** Conflicts that were not resolved but overruled: with the one side as a whole, what the other one has is gone. */
import type { Oid } from '../issue.js';
import type { Git } from '../worktree/git-types.js';

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

/** Whether some line of `part` is missing in `whole`; blank lines and indents say nothing. */
async function lacksLines(git: Git, { whole, part }: { readonly whole: Oid; readonly part: Oid }): Promise<boolean> {
  const there = new Set(await linesOf(git, whole));
  return (await linesOf(git, part)).some((line) => line !== '' && !there.has(line));
}

async function linesOf(git: Git, blob: Oid): Promise<readonly string[]> {
  const text = (await git.readBlob(blob)).toString('latin1');
  return text.split('\n').map((line) => line.trim());
}
