/** `giro implement <target>`: the one verb. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, realpath } from 'node:fs/promises';
import { availableParallelism, homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventBody } from '../event.js';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { gateFacts } from '../gates/definition.js';
import type { IssueId, SpecSlug } from '../issue.js';
import { shortOid } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { makeFolder, openAppend, removeTree } from '../platform/files.js';
import { printable } from '../platform/text.js';
import type { Policy } from '../policy.js';
import type { Level } from '../report/lines.js';
import { ndjsonOf } from '../report/ndjson.js';
import { buildGraph } from '../scheduler/graph.js';
import { readBranches } from '../store/facts.js';
import { takeLock, type RunLock } from '../store/lock.js';
import { integrationRef } from '../store/refs.js';
import { openGit } from '../worktree/git.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { bringIn, endingOf, type Ending } from './ending.js';
import { runEngine, type EngineEnd } from './engine.js';
import { proofHolds } from './landing.js';
import { checkedOutFailure, checkedOutIn } from './opening.js';
import { exitCodes, type ExitCode } from './exit.js';
import { renderFailure } from './failure-text.js';
import { Feed } from './feed.js';
import { gatePreview, planPreview } from './plan-preview.js';
import { prepare, type Prepared } from './prepare.js';
import { chooseShow, openShow, write, type Show, type Terminal } from './show.js';
import { listenForStop, type StopSignal, type Stopping } from './stopping.js';
import { findIssue, parseTarget, someOf } from './target.js';
import { giroVersion } from './version.js';

/** What was typed. */
export interface ImplementOptions {
  readonly target: string;
  /** `null`: `[limits] agents`. */
  readonly concurrency: number | null;
  readonly json: boolean;
  readonly plain: boolean;
  readonly dryRun: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly folder: string;
}

/** How the process ends: with an exit code, or by the signal that stopped it. */
export type ProcessEnd = { readonly exit: ExitCode } | { readonly signal: StopSignal };

interface Opened {
  readonly git: OpenedGit;
  readonly top: string;
  readonly prepared: Prepared;
  readonly only: IssueId | null;
  readonly runFolder: string;
  readonly run: string;
}

/** Runs the command. */
export async function implement(options: ImplementOptions, terminal: Terminal): Promise<ProcessEnd> {
  const opened = await open(options, terminal);
  if (!opened.ok) return refuse(opened.failure);
  const { git } = opened.value;
  try {
    return options.dryRun ? dryRun(opened.value, options, terminal) : await start(opened.value, options, terminal);
  } finally {
    await git.close();
  }
}

function refuse(failure: Failure): ProcessEnd {
  process.stderr.write(`${renderFailure(failure)}\n`);
  return { exit: exitCodes.error };
}

/** Everything before something is written: the repository, the target, the checks. */
async function open(options: ImplementOptions, terminal: Terminal): Promise<Result<Opened, Failure>> {
  const looked = await openGit({ folder: options.folder, own: terminal.env, runFolder: null });
  if (!looked.ok) return looked;
  const { commonDir, user } = looked.value;
  const { topLevel } = user;
  await looked.value.close();
  if (topLevel === null) return failed(bareFailure);
  const target = parseTarget(options.target, { cwd: await realpath(options.folder), top: topLevel });
  if (!target.ok) return target;
  if (target.value.kind === 'backlog') return failed(backlogFailure);
  const typed = target.value.kind === 'issue' ? target.value.issue : null;
  const run = runId();
  const runFolder = join(commonDir, 'giro', 'runs', run);
  const git = await openGit({
    folder: options.folder,
    own: terminal.env,
    runFolder: options.dryRun ? null : runFolder,
  });
  if (!git.ok) return git;
  const prepared = await prepare({
    git: git.value,
    top: topLevel,
    spec: target.value.spec,
    issue: typed,
    own: terminal.env,
    processors: availableParallelism(),
    at: systemClock.iso(),
  });
  const only = prepared.ok ? onlyIssue(prepared.value, typed) : ok(null);
  if (!prepared.ok || !only.ok) {
    await git.value.close();
    return prepared.ok ? (only.ok ? failed(bareFailure) : only) : prepared;
  }
  return ok({ git: git.value, top: topLevel, prepared: prepared.value, only: only.value, runFolder, run });
}

const bareFailure: Failure = {
  kind: 'environment',
  message: 'this is a bare repository: giro reads giro.toml and the Specs from a checkout',
  hint: 'run it in a clone or a worktree',
};

const backlogFailure: Failure = {
  kind: 'usage',
  message: 'a backlog (docs/specs) is not a target in this version',
  hint: 'name one Spec, such as: giro implement auth',
};

/** The Issue that was named, whose dependencies must be integrated. */
function onlyIssue(prepared: Prepared, typed: string | null): Result<IssueId | null, Failure> {
  if (typed === null) return ok(null);
  const { issues, slug } = prepared.parsed.spec;
  const id = findIssue(
    issues.map((issue) => issue.id),
    typed,
  );
  const issue = issues.find((one) => one.id === id);
  if (issue === undefined) {
    const known = someOf(issues.map((one) => one.id));
    return failed({
      kind: 'usage',
      message: `the Spec ${slug} has no Issue ${JSON.stringify(typed)}`,
      hint: `known: ${known}`,
    });
  }
  const open = issue.dependsOn.filter((on) => issues.find((one) => one.id === on)?.state !== 'done');
  if (open.length === 0) return ok(issue.id);
  return failed({
    kind: 'usage',
    message: `${issue.id} depends on ${open.join(', ')}, not integrated yet`,
    hint: `run the whole Spec: giro implement ${slug}`,
  });
}

/** The plan, the waves, the gates and the budget; nothing is written or spent. */
function dryRun(opened: Opened, options: ImplementOptions, terminal: Terminal): ProcessEnd {
  const { spec } = opened.prepared.parsed;
  const { policy, intake, tip } = opened.prepared;
  const graph = buildGraph(spec.issues);
  if (options.json) {
    const issues = spec.issues.map((issue) => ({
      id: issue.id,
      title: issue.title,
      state: issue.state,
      wave: graph.wave(issue.id),
      dependsOn: issue.dependsOn,
    }));
    const gates = policy.gates.map(gateFacts);
    write(
      terminal,
      `${JSON.stringify({ spec: spec.slug, base: opened.git.user.head, tip, issues, gates, budget: policy.budget, driver: policy.roles.worker, planner: policy.roles.planner })}\n`,
    );
    return { exit: exitCodes.proof };
  }
  const lines = [
    `${spec.slug}: ${spec.title}`,
    tip === null
      ? `base      ${shortOid(opened.git.user.head)} (a first run would snapshot the Spec onto giro/${spec.slug})`
      : `tip       ${shortOid(tip)} of giro/${spec.slug}`,
    ...graph.waves.map((wave, index) => {
      const names = wave.map((id) => {
        const state = spec.issues.find((issue) => issue.id === id)?.state ?? 'ready';
        return state === 'ready' ? id : `${id} (${state})`;
      });
      return `wave ${String(index + 1).padEnd(5)}${names.join(', ')}`;
    }),
    ...gatePreview(policy),
    `driver    ${policy.roles.worker}, ${String(concurrencyOf(options, policy))} at once`,
    ...planPreview(spec.issues.length, policy),
    ...spec.ignored.map((file) => `ignored   ${file.path} (${file.reason})`),
    ...(intake.edited.length > 0 ? [`taken in  ${intake.edited.join(', ')}`] : []),
    'nothing was started or written',
  ];
  write(terminal, `${lines.join('\n')}\n`);
  return { exit: exitCodes.proof };
}

async function start(opened: Opened, options: ImplementOptions, terminal: Terminal): Promise<ProcessEnd> {
  const { git, prepared, run, runFolder } = opened;
  const { spec } = prepared;
  if (
    prepared.before === 'done' &&
    prepared.tip !== null &&
    nothingNew(prepared) &&
    (await proofHolds(git, prepared.policy, prepared.tip))
  ) {
    const lines = [
      ...(await bringIn(git, spec, prepared.tip)),
      `proof: giro/${spec} is at ${shortOid(prepared.tip)}, verified; nothing to do`,
    ];
    return alreadyProved(lines, { opened, options, terminal });
  }
  const folder = await checkedOutIn(git, integrationRef(spec));
  if (folder !== null) return refuse(checkedOutFailure(spec, folder));
  const lock = await takeLock({ commonDir: git.commonDir, spec, run, at: systemClock.iso() });
  if (!lock.ok) return refuse(lock.failure);
  try {
    if (!(await isCurrent(opened))) return refuse(movedFailure(spec));
    await makeFolder(runFolder);
    return await show(opened, options, { terminal, lock: lock.value });
  } finally {
    await lock.value.release();
  }
}

/** What was read before the lock was taken may be old by now: another engine may have ended in between. */
async function isCurrent({ git, prepared }: Opened): Promise<boolean> {
  const branches = await readBranches(git, prepared.spec);
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

function nothingNew(prepared: Prepared): boolean {
  return prepared.intake.edited.length === 0 && prepared.intake.answered.length === 0;
}

function alreadyProved(
  lines: readonly string[],
  parts: { readonly opened: Opened; readonly options: ImplementOptions; readonly terminal: Terminal },
): ProcessEnd {
  const { opened, options, terminal } = parts;
  if (!options.json) {
    write(terminal, `${lines.join('\n')}\n`);
    return { exit: exitCodes.proof };
  }
  const { prepared, run } = opened;
  const total = prepared.parsed.spec.issues.length;
  const body: EventBody = {
    type: 'run.finished',
    spec: prepared.spec,
    exit: 0,
    reason: 'proof',
    tip: prepared.tip,
    done: total,
    total,
    gitProcesses: opened.git.processes(),
    lines,
  };
  write(terminal, `${ndjsonOf({ v: 1, at: systemClock.iso(), run, ...body })}\n`);
  return { exit: exitCodes.proof };
}

/** Runs the engine while somebody looks at it. */
async function show(
  opened: Opened,
  options: ImplementOptions,
  held: { readonly terminal: Terminal; readonly lock: RunLock },
): Promise<ProcessEnd> {
  const { terminal } = held;
  const kind = chooseShow(terminal, options);
  const level: Level = options.quiet ? 'quiet' : options.verbose ? 'verbose' : 'normal';
  const feed = new Feed(opened.run, await openAppend(join(opened.runFolder, 'events.ndjson')));
  let view: Show | null = null;
  const stopping: Stopping = listenForStop({
    onFirst: (signal) => {
      feed.emit({
        type: 'run.stopping',
        reason: `${signal}: no new work; agents are ended, state is saved; once more kills at once`,
      });
    },
    onSecond: () => {
      restoreTerminal(terminal);
    },
  });
  terminal.stdout.on('error', () => undefined);
  const warned = (warning: Error): void => {
    feed.emit({ type: 'run.notice', level: 'warning', message: printable(`${warning.name}: ${warning.message}`) });
  };
  // Node would write them over the board.
  process.removeAllListeners('warning').on('warning', warned);
  try {
    view = await openShow(kind, terminal, { level, onInterrupt: stopping.interrupt });
    feed.show = view;
    return await engineRun(opened, options, { ...held, feed, stopping, view, kind });
  } finally {
    await view?.close();
    await feed.close();
    stopping.close();
  }
}

interface Running {
  readonly terminal: Terminal;
  readonly lock: RunLock;
  readonly feed: Feed;
  readonly stopping: Stopping;
  readonly view: Show;
  readonly kind: 'board' | 'lines' | 'json';
}

async function engineRun(opened: Opened, options: ImplementOptions, running: Running): Promise<ProcessEnd> {
  const { git, prepared, top, runFolder } = opened;
  const { feed, stopping, terminal } = running;
  const temporary = await mkdtemp(join(tmpdir(), 'giro-'));
  try {
    const result = await runEngine({
      git,
      prepared,
      lock: running.lock,
      top,
      only: opened.only,
      concurrency: concurrencyOf(options, prepared.policy),
      own: terminal.env,
      cacheFolder: terminal.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
      clock: systemClock,
      signal: stopping.signal,
      emit: feed.emit,
      runFolder,
      temporary,
      giro: giroVersion,
      jitter: Math.random,
    });
    if (result.ok) return await finish(opened, result.value, running);
    await sayFailed(opened, running, renderFailure(result.failure));
    await running.view.close();
    return refuse(result.failure);
  } catch (error) {
    await sayFailed(
      opened,
      running,
      `giro: this is a bug of giro: ${printable(String(error))}\n  run the same command again`,
    );
    throw error;
  } finally {
    await removeTree(temporary);
  }
}

async function finish(opened: Opened, ended: EngineEnd, running: Running): Promise<ProcessEnd> {
  const { git, prepared } = opened;
  const { feed, stopping, view, kind, terminal } = running;
  const by = stopping.by();
  const ending = endingOf({
    end: ended.end,
    spec: prepared.spec,
    only: opened.only,
    tip: ended.tip,
    states: ended.states,
    views: feed.state.issues,
    stray: ended.stray,
    stopped: by,
    bringIn: ended.end.kind === 'proof' ? await bringIn(git, prepared.spec, ended.tip) : [],
  });
  feed.emit(finishedEvent(git, prepared.spec, { ended, ending }));
  await view.close();
  if (kind === 'board') write(terminal, `${ending.lines.join('\n')}\n`);
  return by === null ? { exit: ending.exit } : { signal: by };
}

/** Whoever reads the events must see that the run is over: what began ends with `run.finished`, errors too. */
async function sayFailed({ git, prepared }: Opened, { feed }: Running, message: string): Promise<void> {
  const { state } = feed;
  if (state.run === null || state.result !== null) return;
  const known = [...state.issues.values()].map(({ progress }) => progress.kind === 'done');
  const issues = known.length > 0 ? known : prepared.parsed.spec.issues.map((issue) => issue.state === 'done');
  feed.emit({
    type: 'run.finished',
    spec: prepared.spec,
    exit: exitCodes.error,
    reason: 'error',
    tip: await git.readRef(integrationRef(prepared.spec)).catch(() => state.tip),
    done: issues.filter(Boolean).length,
    total: issues.length,
    gitProcesses: git.processes(),
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

function concurrencyOf(options: ImplementOptions, policy: Policy): number {
  return options.concurrency ?? policy.limits.agents;
}

/** Main screen, visible cursor, no colour: whatever the board was doing. */
function restoreTerminal(terminal: Terminal): void {
  if (!terminal.stdout.isTTY) return;
  if (terminal.stdin.isTTY) terminal.stdin.setRawMode(false);
  terminal.stdout.write('\u001b[0m\u001b[?25h\u001b[?1049l');
}

function runId(): string {
  return `${systemClock
    .iso()
    .replace(/[-:]|\.\d+/g, '')
    .toLowerCase()}-${randomBytes(3).toString('hex')}`;
}
