/** `giro stop [target]`: asks the engines that run to stop in order, waits for them, and says what was stopped. */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { SpecSlug } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { kindOf } from '../platform/files.js';
import { lookForMarked } from '../platform/marked.js';
import { specsFolder } from '../spec.js';
import { readEngines } from '../store/engines.js';
import { integrationRef } from '../store/refs.js';
import { findStopFile } from '../store/stop.js';
import { openGit } from '../worktree/git.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { exitCodes, type ExitCode } from './exit.js';
import { endLeftRunning, tellLeft } from './leftovers.js';
import { refuse } from './refuse.js';
import { write, type Terminal } from './show.js';
import { askedLine, endLine, jsonOf, nothingLine, progressLine, unreadableLine } from './stop-text.js';
import { enginesToStop, waitForEnd, type Ended } from './stop-wait.js';
import { parseTarget } from './target.js';

/** For what a giro that is gone left running, whose `[limits] grace` nobody knows any more. */
const leftGraceMs = 10_000;

/** What was typed. */
export interface StopOptions {
  readonly target: string | null;
  /** Without the grace for agents; what does not answer is ended by force. */
  readonly now: boolean;
  /** How long to wait for the end. */
  readonly waitMs: number;
  readonly json: boolean;
  readonly folder: string;
}

/** Runs the command. */
export async function stop(options: StopOptions, terminal: Terminal): Promise<ExitCode> {
  const opened = await openGit({ folder: options.folder, own: terminal.env, runFolder: null });
  if (!opened.ok) return refused(opened.failure);
  const git = opened.value;
  try {
    const spec = await specOf(git, options);
    if (!spec.ok) return refused(spec.failure);
    return await stopIn(git.commonDir, spec.value, { options, terminal });
  } finally {
    await git.close();
  }
}

function refused(failure: Failure): ExitCode {
  refuse(failure);
  return exitCodes.error;
}

/** The Spec that was named; `null`: whatever runs. */
async function specOf(git: OpenedGit, { target, folder }: StopOptions): Promise<Result<SpecSlug | null, Failure>> {
  if (target === null) return ok(null);
  const top = git.user.topLevel ?? folder;
  const parsed = parseTarget(target, { cwd: await realpath(folder), top });
  if (!parsed.ok) return parsed;
  if (parsed.value.kind === 'backlog') return ok(null);
  const { spec } = parsed.value;
  if (parsed.value.kind === 'issue') {
    const message = 'an Issue is stopped with its Spec';
    return failed({ kind: 'usage', message, hint: `stop it with: giro stop ${spec}` });
  }
  const isKnown =
    (await readEngines(git.commonDir)).some((engine) => engine.spec === spec) ||
    (await git.readRef(integrationRef(spec))) !== null ||
    (await kindOf(join(top, specsFolder, spec, 'SPEC.md'))) === 'file';
  if (isKnown) return ok(spec);
  return failed({ kind: 'usage', message: `there is no Spec ${JSON.stringify(spec)}`, hint: 'see them: giro status' });
}

async function stopIn(
  commonDir: string,
  spec: SpecSlug | null,
  { options, terminal }: { readonly options: StopOptions; readonly terminal: Terminal },
): Promise<ExitCode> {
  const say = (line: string): void => {
    if (!options.json) write(terminal, `${line}\n`);
  };
  const { engines, unreadable, others } = await enginesToStop(commonDir, spec);
  const file = await findStopFile(commonDir, spec);
  for (const engine of engines) say(askedLine(engine));
  const ended = await waitForEnd(engines, {
    now: options.now,
    waitMs: options.waitMs,
    clock: systemClock,
    progress: (engine, state) => {
      say(progressLine(engine, state));
    },
  });
  // Last: also what those left that had to be ended by force.
  const graceMs = options.now ? 0 : Math.min(leftGraceMs, options.waitMs);
  const left = await endLeftRunning({ commonDir, spec, graceMs, clock: systemClock, look: lookForMarked });
  if (options.json) write(terminal, `${jsonOf(ended, left)}\n`);
  const [over, open] = [ended.filter(isOver), ended.filter((one) => !isOver(one))];
  for (const one of over) say(endLine(one, { now: options.now, file }));
  if (left.ended.length > 0) say(`ended what a giro that was killed left running: ${tellLeft(left.ended)}`);
  const faults = [
    ...open.map((one) => endLine(one, { now: options.now, file })),
    ...unreadable.map(unreadableLine),
    ...(left.withstood.length > 0 ? [`cannot be ended: ${tellLeft(left.withstood)}`] : []),
  ];
  for (const line of faults) process.stderr.write(`giro: ${line}\n`);
  if (engines.length + unreadable.length + left.ended.length + left.withstood.length === 0)
    say(nothingLine({ spec, file, commonDir, others }));
  return faults.length > 0 ? exitCodes.error : exitCodes.proof;
}

function isOver({ outcome }: Ended): boolean {
  return outcome !== 'running' && outcome !== 'unseen';
}
