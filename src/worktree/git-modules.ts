/**
 * Questions about the objects of another repository, as a submodule's: its objects are read as data by way of the private
 * git dir, its config and hooks never.
 */
import { join } from 'node:path';
import { parseOid } from '../issue.js';
import { GitError, type ForeignAnswer, type ForeignQuestion, type RunGit } from './git-types.js';

/** Asks it; `run` reads in the private git dir. */
export async function askForeign(run: RunGit, question: ForeignQuestion): Promise<ForeignAnswer> {
  const { gitDir, commit, tips, known } = question;
  const env = { GIT_OBJECT_DIRECTORY: join(gitDir, 'objects') };
  const parsed = await run({
    args: ['rev-parse', '--verify', '-q', `${commit}^{tree}`],
    env,
    accept: [0, 1, 128],
  });
  const tree = parsed.code === 0 ? parseOid(parsed.stdout.toString().trim()) : null;
  if (tips.length === 0) return { tree, hasOwn: false };
  const from = tree === null ? known : [...known, commit];
  const input = [...tips, ...from.map((oid) => `^${oid}`)].map((line) => `${line}\n`).join('');
  try {
    const { stdout } = await run({ args: ['rev-list', '--max-count=1', '--stdin'], env, input });
    return { tree, hasOwn: stdout.length > 0 };
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    // Something that is named is missing: nobody can say that nothing would be lost.
    return { tree, hasOwn: true };
  }
}
