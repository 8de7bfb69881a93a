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
  const looked = await openGit({ folder: options.folder, own: terminal.env, runFolder: null });
  if (!looked.ok) return looked;
  const { commonDir, user } = looked.value;
  const { topLevel } = user;
  await looked.value.close();
  if (topLevel === null) return failed(bareFailure);
  const target = parseTarget(options.target, { cwd: await realpath(options.folder), top: topLevel });
  if (!target.ok) return target;
  if (!options.dryRun) {
    const file = await findStopFile(commonDir, target.value.kind === 'backlog' ? null : target.value.spec);
    if (file !== null) return failed({ kind: 'forbidden', file, target: target.value });
  }
  const run = newRunId();
  const runFolder = join(commonDir, 'giro', 'runs', run);
  const git = await openGit({
    folder: options.folder,
    own: terminal.env,
    runFolder: options.dryRun ? null : runFolder,
  });
  return git.ok ? ok({ git: git.value, top: topLevel, target: target.value, run, runFolder }) : git;
}

const bareFailure: Failure = {
  kind: 'environment',
  message: 'this is a bare repository: giro reads giro.toml and the Specs from a checkout',
  hint: 'run it in a clone or a worktree',
};
