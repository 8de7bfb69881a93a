/** Opens the repository that a run works on, and reads its target. */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { findStopFile, type StopFile } from '../store/stop.js';
import { openGit } from '../worktree/git.js';
import type { OpenedGit } from '../worktree/git-types.js';
import type { ImplementOptions } from './options.js';
import { newRunId } from './run-id.js';
import type { Terminal } from './show.js';
import { parseTarget, type Target } from './target.js';

/** The repository of a run. */
export interface Opened {
  readonly git: OpenedGit;
  /** Root of the person's checkout. */
  readonly top: string;
  readonly target: Target;
  /** Id of the run. */
  readonly run: string;
  /** Where its logs and events go. */
  readonly runFolder: string;
}

/** A `STOP` file keeps it from running. */
export interface Forbidden {
  readonly kind: 'forbidden';
  readonly file: StopFile;
  readonly target: Target;
}

/** Opens the repository; a dry run makes no folder in it. */
export async function openRepository(
  options: ImplementOptions,
  terminal: Terminal,
): Promise<Result<Opened, Failure | Forbidden>> {
  const run = newRunId();
  const folderOf = (commonDir: string): string => join(commonDir, 'giro', 'runs', run);
  const runFolder = options.dryRun ? null : folderOf;
  const opened = await openGit({ folder: options.folder, own: terminal.env, runFolder });
  if (!opened.ok) return opened;
  const git = opened.value;
  const looked = await lookAround(git, options);
  if (looked.ok) return ok({ git, ...looked.value, run, runFolder: folderOf(git.commonDir) });
  await git.close();
  return looked;
}

/** Reads the target, and what would forbid it. */
async function lookAround(
  { commonDir, user }: OpenedGit,
  options: ImplementOptions,
): Promise<Result<Pick<Opened, 'top' | 'target'>, Failure | Forbidden>> {
  const { topLevel: top } = user;
  if (top === null) return failed(bareFailure);
  const target = parseTarget(options.target, { cwd: await realpath(options.folder), top });
  if (!target.ok) return target;
  if (!options.dryRun) {
    const file = await findStopFile(commonDir, target.value.kind === 'backlog' ? null : target.value.spec);
    if (file !== null) return failed({ kind: 'forbidden', file, target: target.value });
  }
  return ok({ top, target: target.value });
}

const bareFailure: Failure = {
  kind: 'environment',
  message: 'this is a bare repository: giro reads giro.toml and the Specs from a checkout',
  hint: 'run it in a clone or a worktree',
};
