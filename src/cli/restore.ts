/** Brings saved work back: onto a new branch, or into a new folder. Never over anything that is there. */
import { dirname, join, relative } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { Oid } from '../issue.js';
import { kindOf } from '../platform/files.js';
import { listFolder, makeFolder } from '../platform/folders.js';
import { realPath } from '../platform/links.js';
import { branchName } from '../store/refs.js';
import { GitError, type OpenedGit } from '../worktree/git-types.js';
import { salvageFolder } from '../worktree/salvage.js';

/** What is brought back. */
interface Saved {
  readonly ref: string;
  readonly commit: Oid;
}

/** What was done, for a person. */
interface Restored {
  readonly lines: readonly string[];
  /** The branch that was made. */
  readonly branch?: string;
  /** How many files were written. */
  readonly files?: number;
}

/** Makes a branch on the saved commit, below a name of giro's. */
export async function restoreOnBranch(git: OpenedGit, { ref, commit }: Saved): Promise<Result<Restored, Failure>> {
  const branch = `refs/heads/giro-salvage/${ref.slice(salvageFolder.length)}`;
  const name = branchName(branch);
  const present = await git.readRef(branch);
  if (present !== null && present !== commit)
    return refused(`there is a branch ${name} already, with something else`, `rename it: git branch -m ${name} other`);
  const moved = present === null ? await git.moveRef(branch, commit, null) : ok(undefined);
  if (!moved.ok) {
    const why = moved.failure.kind === 'ref-refused' ? moved.failure.message : 'it was made meanwhile';
    return refused(`the branch ${name} cannot be made: ${why}`, 'give a folder instead');
  }
  const first = present === null ? `restored ${ref} as the branch ${name}` : `the branch ${name} has it already`;
  return ok({ branch, lines: [first, `look at it: git log -p ${name}`, `take it:    git switch ${name}`] });
}

/** Writes all files of the saved commit into a folder that is new or empty. */
export async function restoreInto(
  { git, runFolder }: { readonly git: OpenedGit; readonly runFolder: string },
  { ref, commit }: Saved,
  folder: string,
): Promise<Result<Restored, Failure>> {
  const kind = await kindOf(folder);
  if (kind !== null && (kind !== 'folder' || (await listFolder(folder)).length > 0))
    return refused(`${folder} is there already`, 'name a folder that is not, or an empty one');
  // Links on the way would hide where it really goes.
  const real = await nearestReal(folder);
  const below = relative(git.commonDir, real);
  if (below === '' || !below.startsWith('..'))
    return refused(`${folder} is inside the git folder of the repository`, 'name another one');
  const { tree } = await git.readCommit(commit);
  const files = await git.listTree(tree);
  try {
    await makeFolder(folder);
    await git.checkOut(folder, join(runFolder, 'restore.index'), tree);
  } catch (error) {
    if (!(error instanceof GitError || (error instanceof Error && 'code' in error))) throw error;
    const why = error instanceof GitError ? error.stderr.trim() : error.message;
    return refused(`${ref} could not be written to ${folder}: ${why}`, 'what is there of it is not complete');
  }
  const count = files.length === 1 ? '1 file' : `${String(files.length)} files`;
  return ok({ files: files.length, lines: [`restored ${count} of ${ref} into ${folder}`, 'the ref stays'] });
}

/** The path with the links of its part that exists followed. */
async function nearestReal(path: string): Promise<string> {
  const real = await realPath(path);
  if (real !== null || dirname(path) === path) return real ?? path;
  return join(await nearestReal(dirname(path)), path.slice(dirname(path).length + 1));
}

function refused(message: string, hint: string): Result<never, Failure> {
  return failed({ kind: 'usage', message, hint });
}
