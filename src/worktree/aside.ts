/** What is moved out of an agent's folder as it stands, since git must not look at it and cleaning would remove it. */
import { randomBytes } from 'node:crypto';
import { basename, dirname, join, posix } from 'node:path';
import type { IssueId } from '../issue.js';
import { rename } from '../platform/files.js';
import { makeFolder, removeTree } from '../platform/folders.js';
import { moveGitDir, type Held, type Submodules } from './submodules.js';

/** Whose folder it is. */
export interface AsideOwner {
  readonly folder: string;
  readonly issue: IssueId;
  readonly submodules: Submodules;
}

/** Moves a repository, together with its git dir where that lies among the folder's admin files; says where to. */
export async function setAside(owner: AsideOwner, path: string): Promise<string> {
  const target = join(placeBeside(owner), path);
  await makeFolder(dirname(target));
  const gitDir = await owner.submodules.gitDirOf(posix.dirname(path));
  await rename(join(owner.folder, path), target);
  if (gitDir !== null) {
    await removeTree(target);
    await moveGitDir(gitDir, target);
  }
  return `${path} in its worktree is a repository of its own; it was moved to ${target}`;
}

/** Moves a submodule with its files and its repository; says where to. */
export async function moveSubmodule(owner: AsideOwner, held: Held): Promise<string> {
  const target = join(placeBeside(owner), held.path);
  await owner.submodules.moveAway(held, target);
  return `the submodule ${held.path} of its worktree holds work of its own; it was moved, with its repository, to ${target}`;
}

/** Moves repositories of submodules that are not in the folder any more, when they hold what is nowhere else; says where to. */
export async function keepGitDirs(owner: AsideOwner, held: readonly Held[]): Promise<readonly string[]> {
  const messages: string[] = [];
  for (const gitDir of await owner.submodules.orphans(held)) {
    const target = join(placeBeside(owner), 'modules', basename(gitDir));
    await moveGitDir(gitDir, target);
    messages.push(`commits of a submodule that is not in its worktree any more are kept in ${target}`);
  }
  return messages;
}

function placeBeside({ folder, issue }: AsideOwner): string {
  return join(dirname(folder), 'aside', `${issue}-${randomBytes(4).toString('hex')}`);
}
