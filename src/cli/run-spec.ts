/** One Spec of a run, from its lock to its last lines. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Emit, EventBody } from '../event.js';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { IssueId, SpecSlug } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { makeFolder } from '../platform/folders.js';
import { printable } from '../platform/text.js';
import type { AgentShare } from '../scheduler/slots.js';
import type { RunState } from '../state.js';
import { readBranches, readOpenBranches } from '../store/facts.js';
import { takeLock, type RunLock } from '../store/lock.js';
import { integrationRef } from '../store/refs.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { knownText } from './crash-text.js';
import { endingOf, howToTake, provedLines, type Ending } from './ending.js';
import { runEngine } from './engine.js';
import type { EngineEnd } from './engine-request.js';
import { exitCodes } from './exit.js';
import { renderFailure } from './failure-text.js';
import { proofHolds } from './landing.js';
import type { Opened } from './opened.js';
import { checkedOutFailure, checkedOutIn } from './opening.js';
import { atRest, type Prepared } from './prepare.js';
import { noteProofs } from './proof-notes.js';
import type { Stack } from './stacking.js';
import type { Shared } from './shared.js';
import type { Terminal } from './show.js';
import type { StoppedBy } from './stopping.js';
import { giroVersion } from './version.js';

/** One Spec that is to be run. */
export interface SpecRun {
  readonly opened: Opened;
  readonly prepared: Prepared;
  readonly stack: Stack;
  /** Only this Issue; `null`: all of them. */
  readonly only: IssueId | null;
  readonly shared: Shared;
  /** This Spec's part of the agents. */
  readonly agents: AgentShare;
  readonly noMore: AbortSignal;
  /** Where the logs of this Spec go. */
  readonly folder: string;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  /** What ended the run before its end. */
  readonly stopped: () => StoppedBy | null;
  readonly landed: (ms: number) => void;
  readonly emit: Emit;
  /** What the events of this Spec come to. */
  readonly state: () => RunState;
}

/** Gives the last lines of a Spec whose proof holds and that has nothing new; `null`: there is something to run. */
export async function provedAlready(git: OpenedGit, prepared: Prepared): Promise<readonly string[] | null> {
  const { before, tip, spec, policy, intake } = prepared;
  if (before !== 'done' || tip === null) return null;
  if (intake.edited.length > 0 || intake.answered.length > 0) return null;
  if (!(await proofHolds(git, policy, tip))) return null;
  await noteProofs(git, spec, tip);
  return provedLines(git, spec, tip);
}

/** The event that ends a run of a Spec with nothing to do. */
export function provedAlreadyEvent(git: OpenedGit, prepared: Prepared, lines: readonly string[]): EventBody {
  const total = prepared.parsed.spec.issues.length;
  return {
    type: 'run.finished',
    spec: prepared.spec,
    exit: exitCodes.proof,
    reason: 'proof',
    tip: prepared.tip,
    done: total,
    total,
    gitProcesses: git.processes(),
    lines,
  };
}

/** Holds the lock of a Spec while something is done; refuses when that cannot start. */
export async function whileLocked<T>(
  { git, run, runFolder }: Opened,
  prepared: Prepared,
  act: (lock: RunLock) => Promise<T>,
): Promise<Result<T, Failure>> {
  const { spec } = prepared;
  const folder = await checkedOutIn(git, integrationRef(spec));
  if (folder !== null) return failed(checkedOutFailure(spec, folder));
  const lock = await takeLock({ commonDir: git.commonDir, spec, run, at: systemClock.iso() });
  if (!lock.ok) return lock;
  try {
    if (!(await isCurrent(git, prepared))) return failed(movedFailure(spec));
    await makeFolder(runFolder);
    return ok(await act(lock.value));
  } finally {
    await lock.value.release();
  }
}

/** What was read before the lock was taken may be old by now: another engine may have ended in between. */
async function isCurrent(git: OpenedGit, prepared: Prepared): Promise<boolean> {
  const asleep = atRest(prepared.parsed.spec.issues);
  const branches = await readOpenBranches(git, prepared.spec, (issue) => asleep.has(issue));
  const same = [...branches].every(([issue, oid]) => prepared.branches.get(issue) === oid);
  return (
    same &&
    branches.size === prepared.branches.size &&
    (await git.readRef(integrationRef(prepared.spec))) === prepared.tip
  );
}

function movedFailure(spec: string): Failure {
  return { kind: 'locked', message: `another giro was just at work on ${spec}`, hint: 'run the same command again' };
}

/** Runs a Spec, or one of its Issues, to its end, which its last event says whatever happens. */
export async function runToEnd(run: SpecRun, lock: RunLock): Promise<Result<Ending, Failure>> {
  const { opened, prepared, terminal } = run;
  try {
    const result = await runEngine({
      git: opened.git,
      prepared,
      lock,
      top: opened.top,
      stack: run.stack,
      only: run.only,
      shared: run.shared,
      agents: run.agents,
      own: terminal.env,
      cacheFolder: terminal.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
      clock: run.shared.clock,
      signal: run.signal,
      noMore: run.noMore,
      landed: run.landed,
      emit: run.emit,
      run: opened.run,
      runFolder: run.folder,
      giro: giroVersion,
      jitter: Math.random,
    });
    if (result.ok) return ok(await finish(run, result.value));
    await sayFailed(run, renderFailure(result.failure));
    return result;
  } catch (error) {
    const bug = `giro: this is a bug of giro: ${printable(String(error))}\n  run the same command again`;
    await sayFailed(run, knownText(error) ?? bug);
    throw error;
  }
}

async function finish(run: SpecRun, ended: EngineEnd): Promise<Ending> {
  const { opened, prepared, only } = run;
  const { git } = opened;
  const ending = endingOf({
    end: ended.end,
    spec: prepared.spec,
    only,
    tip: ended.tip,
    states: ended.states,
    views: run.state().issues,
    spent: run.state().spent,
    waivers: ended.waivers,
    stray: ended.stray,
    stopped: run.stopped(),
    branches: ended.end.kind === 'stopped' ? await readBranches(git, prepared.spec) : new Map(),
    bringIn: ended.end.kind === 'proof' ? await howToTake(git, prepared.spec, ended.tip) : [],
  });
  await noteProofs(git, prepared.spec, ended.tip);
  run.emit(finishedEvent(git, prepared.spec, { ended, ending }));
  return ending;
}

/** Whoever reads the events must see that the run is over: what began ends with `run.finished`, errors too. */
async function sayFailed({ opened, prepared, state: stateOf, emit }: SpecRun, message: string): Promise<void> {
  const state = stateOf();
  if (state.run === null || state.result !== null) return;
  const known = [...state.issues.values()].map(({ progress }) => progress.kind === 'done');
  const issues = known.length > 0 ? known : prepared.parsed.spec.issues.map((issue) => issue.state === 'done');
  emit({
    type: 'run.finished',
    spec: prepared.spec,
    exit: exitCodes.error,
    reason: 'error',
    tip: await opened.git.readRef(integrationRef(prepared.spec)).catch(() => state.tip),
    done: issues.filter(Boolean).length,
    total: issues.length,
    gitProcesses: opened.git.processes(),
    lines: message.split('\n'),
  });
}

function finishedEvent(
  git: OpenedGit,
  spec: SpecSlug,
  parts: { readonly ended: EngineEnd; readonly ending: Ending },
): EventBody {
  const { ended, ending } = parts;
  const done = [...ended.states.values()].filter((state) => state === 'done').length;
  const reason = ending.exit === exitCodes.proof ? 'proof' : ended.end.kind === 'stopped' ? 'stopped' : 'needs-human';
  return {
    type: 'run.finished',
    spec,
    exit: ending.exit,
    reason,
    tip: ended.tip,
    done,
    total: ended.states.size,
    gitProcesses: git.processes(),
    lines: ending.lines,
  };
}
