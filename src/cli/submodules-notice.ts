/** Says at the start, in one line each, when submodules are empty in worktrees, or hold what the base does not pin. */
import { join } from 'node:path';
import { shortOid, type Oid } from '../issue.js';
import { listFolder } from '../platform/folders.js';
import { printable } from '../platform/text.js';
import type { Policy } from '../policy.js';
import { isCopied } from '../worktree/copies.js';
import type { Git } from '../worktree/git-types.js';
import { headOfSubmodule, submodulesOf, type Submodule } from '../worktree/submodules.js';

/** The lines to say; none when there are no submodules, or nothing about them can surprise. */
export async function submoduleNotices(request: {
  readonly git: Pick<Git, 'readPath' | 'listTree'>;
  /** The tree that worktrees start from. */
  readonly tree: Oid;
  /** Root of the person's checkout. */
  readonly top: string;
  readonly policy: Pick<Policy, 'worktree'>;
}): Promise<readonly string[]> {
  const { git, tree, top, policy } = request;
  const { copy, setup } = policy.worktree;
  const submodules = await submodulesOf(git, tree);
  const copied = submodules.filter(({ path }) => isCopied(copy, path));
  // Whoever fills them in the set-up knows how.
  const isSetUp = setup !== undefined && /\bsubmodules?\b/.test(setup);
  const left = isSetUp ? [] : submodules.filter((one) => !copied.includes(one)).map(({ path }) => path);
  const notices: string[] = [];
  if (left.length > 0) notices.push(emptyText(left, copy));
  for (const one of copied) {
    const notice = await noticeOn(one, top);
    if (notice !== null) notices.push(notice);
  }
  return notices.map(printable);
}

function emptyText(paths: readonly string[], copy: readonly string[]): string {
  const one = paths.length === 1;
  const shown = paths.slice(0, 5).join(', ');
  return (
    `the ${one ? 'submodule' : 'submodules'} ${shown}${paths.length > 5 ? ` and ${String(paths.length - 5)} more` : ''} ` +
    `will be empty for agents and gates; to give them the files of your checkout: ` +
    `copy = ${JSON.stringify([...copy, ...paths])} in [worktree] of giro.toml`
  );
}

/** What is copied comes from the person's checkout, whatever is there. */
async function noticeOn({ path, commit }: Submodule, top: string): Promise<string | null> {
  const holder = join(top, path);
  const isEmpty = (await listFolder(holder)).every(({ name }) => name === '.git');
  if (isEmpty)
    return `the submodule ${path} is empty in your checkout, and so for agents and gates; fill it with: git submodule update --init --recursive`;
  const head = await headOfSubmodule(holder);
  if (head === null || head === commit) return null;
  return `the submodule ${path} of your checkout is at ${shortOid(head)}, the base has ${shortOid(commit)}: agents and gates get what your checkout has; put it back with: git submodule update --init --recursive`;
}
