/**
 * Runs a backlog: every Spec that has something to run, ordered by what they depend on and then by value, in one limit.
 *
 * B1 A Spec starts when everything it depends on is proved, and a slot is free that no Spec before it takes.
 * B2 One that needs a human, is wrong or is held by somebody else does not stop the others; what depends on it waits.
 * B3 A Spec is opened only when it can begin, so that what the night does not reach stays as the person left it.
 */
import { join } from 'node:path';
import { availableParallelism } from 'node:os';
import { stateOf } from '../backlog-state.js';
import type { BacklogResult } from '../event.js';
import { ok, unreachable, type Failure, type Result } from '../failure.js';
import type { SpecSlug } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { makeFolder } from '../platform/folders.js';
import { printable } from '../platform/text.js';
import type { AgentShare } from '../scheduler/slots.js';
import { announceBacklog } from '../store/engines.js';
import { stopFileAt, type StopFile } from '../store/stop.js';
import { backlogEnding, type SpecOutcome } from './backlog-ending.js';
import { runLimit } from './budgeting.js';
import { itemOf, readBacklog, type BacklogSpec } from './backlog-read.js';
import type { Ending } from './ending.js';
import { exitCodes } from './exit.js';
import { renderFailure } from './failure-text.js';
import type { Opened } from './opened.js';
import type { ImplementOptions, ProcessEnd } from './options.js';
import { prepareSpec, readPolicy } from './prepare.js';
import { refuse } from './refuse.js';
import { runToEnd, whileLocked } from './run-spec.js';
import { openShared, type Shared } from './shared.js';
import { whileStoppable } from './stop-one.js';
import type { StoppedBy } from './stopping.js';
import { write, type Terminal } from './show.js';
import { stackOf } from './stacking.js';
import { whileShown, type Shown } from './showing.js';
import type { Budget, Policy } from '../policy.js';
import { gateFacts } from '../gates/definition.js';
import { gatePreview, runPreview } from './plan-preview.js';
import { giroVersion } from './version.js';

interface Asked {
  readonly options: ImplementOptions;
  readonly terminal: Terminal;
}

/** Runs everything of `docs/specs` that can be run. */
export async function implementBacklog(opened: Opened, asked: Asked): Promise<ProcessEnd> {
  const { options, terminal } = asked;
  const { git, top } = opened;
  const policy = await readPolicy({ top, own: terminal.env, processors: availableParallelism() });
  if (!policy.ok) return refuse(policy.failure);
  const limit = runLimit(policy.value, options.maxCost);
  if (!limit.ok) return refuse(limit.failure);
  const specs = await readBacklog({ git, top, policy: policy.value, at: systemClock.iso() });
  if (!specs.ok) return refuse(specs.failure);
  const budget = { ...policy.value.budget, run: limit.value };
  if (options.dryRun) return preview(specs.value, { ...policy.value, budget }, asked);
  await makeFolder(opened.runFolder);
  const lock = await announceBacklog({ commonDir: git.commonDir, run: opened.run, at: systemClock.iso() });
  const stoppable = { lock, files: [null] };
  try {
    return await whileShown(
      { ...opened, options, terminal, specs: 'several', commonDir: git.commonDir, stoppable },
      (shown) => runNight({ opened, options, policy: policy.value, specs: specs.value, limit: limit.value }, shown),
    );
  } finally {
    await lock.release();
  }
}

function preview(specs: readonly BacklogSpec[], policy: Policy, { options, terminal }: Asked): ProcessEnd {
  const items = specs.map((spec) => itemOf(spec, specs));
  const lines = items.map(({ spec, title, why }, at) => `${String(at + 1).padStart(3)}  ${spec}: ${title}  (${why})`);
  const { worker, planner } = policy.roles;
  const gates = policy.gates.map(gateFacts);
  const text = options.json
    ? JSON.stringify({ specs: items, gates, budget: policy.budget, driver: worker, planner })
    : [
        ...lines,
        ...(lines.length === 0
          ? ['there is no Spec to run']
          : [...gatePreview(policy), ...runPreview(policy, options)]),
        'nothing was started or written',
      ].join('\n');
  write(terminal, `${text}\n`);
  return { exit: specs.some((spec) => spec.plan === 'wrong') ? exitCodes.error : exitCodes.proof };
}

interface Night {
  readonly opened: Opened;
  readonly options: ImplementOptions;
  readonly policy: Policy;
  readonly specs: readonly BacklogSpec[];
  readonly limit: Budget['run'];
}

async function runNight(night: Night, shown: Shown): Promise<ProcessEnd> {
  const { opened, options, policy, specs } = night;
  const { feed, stopping } = shown;
  const concurrency = options.concurrency ?? policy.limits.agents;
  feed.emit({
    type: 'backlog.started',
    giro: giroVersion,
    concurrency,
    gateLimit: policy.limits.gates,
    until: options.deadline === null ? null : new Date(options.deadline.at).toISOString(),
    folder: opened.runFolder,
    specs: specs.map((spec) => itemOf(spec, specs)),
  });
  const { commonDir } = opened.git;
  let onFree = (): void => undefined;
  const shared = await openShared({
    commonDir,
    name: '',
    concurrency,
    gates: policy.limits.gates,
    clock: systemClock,
    limit: night.limit,
    onFree: () => {
      onFree();
    },
  });
  try {
    const running = new RunningNight(night, shown, shared);
    onFree = () => {
      running.consider();
    };
    const outcomes = await running.run();
    const ending = backlogEnding(outcomes, {
      stopped: shown.stopped() ?? reached(shared.spending.refused) ?? running.stoppedAlone(),
      spent: shared.spending.sum.calls === 0 ? null : shared.spending,
    });
    feed.emit({ type: 'backlog.finished', ...ending, gitProcesses: opened.git.processes() });
    const by = stopping.by();
    return by === null ? { exit: ending.exit } : { signal: by };
  } finally {
    await shared.close();
  }
}

function reached(budget: string | null): StoppedBy | null {
  return budget === null ? null : { why: budget, first: null };
}

/** The Specs of a night while they run. */
class RunningNight {
  readonly #night: Night;
  readonly #shown: Shown;
  readonly #shared: Shared;
  readonly #waiting: BacklogSpec[];
  readonly #outcomes = new Map<SpecSlug, SpecOutcome>();
  readonly #running = new Set<SpecSlug>();
  /** Opened, but no agent of it has asked for a slot yet. */
  readonly #starting = new Set<SpecSlug>();
  /** Specs that somebody stopped, each alone. */
  readonly #stopped = new Map<SpecSlug, StoppedBy>();
  #finish: () => void = () => undefined;

  constructor(night: Night, shown: Shown, shared: Shared) {
    this.#night = night;
    this.#shown = shown;
    this.#shared = shared;
    this.#waiting = night.specs.filter((spec) => spec.plan === 'run');
    for (const spec of night.specs) {
      const outcome = outcomeAtStart(spec);
      if (outcome !== null) this.#outcomes.set(spec.id, outcome);
    }
  }

  async run(): Promise<readonly SpecOutcome[]> {
    await new Promise<void>((resolve) => {
      this.#finish = resolve;
      this.consider();
    });
    return this.#night.specs.map(({ id }) => this.#outcomes.get(id) ?? this.#notStarted(id));
  }

  /** Starts whatever can start now; ends the night when nothing runs and nothing can. */
  consider(): void {
    while (this.#mayStart() && this.#shared.agents.free - this.#starting.size > 0) {
      const next = this.#waiting.find((spec) => this.#blockers(spec).length === 0);
      if (next === undefined) break;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#running.add(next.id);
      this.#starting.add(next.id);
      void this.#execute(next);
    }
    if (this.#running.size === 0) this.#finish();
  }

  #mayStart(): boolean {
    return !this.#shown.noMore.aborted && this.#shared.spending.refused === null;
  }

  /** What it depends on that is of this backlog and not proved. */
  #blockers(spec: BacklogSpec): readonly SpecSlug[] {
    return spec.dependsOn.filter(
      (on) => this.#night.specs.some(({ id }) => id === on) && this.#outcomes.get(on)?.result !== 'proved',
    );
  }

  async #execute(spec: BacklogSpec): Promise<void> {
    const began = (): void => {
      // Its own first agents come first.
      setImmediate(() => {
        if (this.#starting.delete(spec.id)) this.consider();
      });
    };
    try {
      const ended = await this.#runOne(spec, began);
      this.#outcomes.set(spec.id, outcomeOf(spec.id, ended, this.#stopped.get(spec.id)?.why ?? null));
      if (!ended.ok) this.#complain(spec.id, renderFailure(ended.failure));
    } catch (error) {
      const message = `this is a bug of giro: ${printable(error instanceof Error ? (error.stack ?? error.message) : String(error))}`;
      this.#outcomes.set(spec.id, { spec: spec.id, result: 'failed', why: message.split('\n')[0] ?? '', asks: false });
      this.#complain(spec.id, message);
    }
    this.#running.delete(spec.id);
    this.#starting.delete(spec.id);
    this.consider();
  }

  #complain(spec: SpecSlug, message: string): void {
    process.stderr.write(`${spec}: ${message}\n`);
  }

  async #runOne(spec: BacklogSpec, began: () => void): Promise<Result<Ending, Failure>> {
    const { opened, policy } = this.#night;
    const { feed, terminal, landed } = this.#shown;
    const { git, top, runFolder } = opened;
    const at = systemClock.iso();
    const file = await stopFileAt(git.commonDir, spec.id);
    if (file !== null) return ok(this.#forbidden(spec.id, file));
    const prepared = await prepareSpec(policy, { git, top, spec: spec.id, issue: null, named: false, at });
    if (!prepared.ok) return prepared;
    const share = this.#shared.agents.share(this.#night.specs.indexOf(spec));
    const { spec: parsed } = prepared.value.parsed;
    const stack = await stackOf({ git, policy }, { ...parsed, tip: prepared.value.tip });
    if (!stack.ok) return stack;
    const ended = await whileLocked(opened, prepared.value, (lock) =>
      whileStoppable({ lock, shown: this.#shown }, (stops) =>
        runToEnd(
          {
            opened,
            prepared: prepared.value,
            only: null,
            stack: stack.value,
            folder: join(runFolder, spec.id),
            terminal,
            ...stops,
            landed,
            emit: feed.of(spec.id),
            state: () => stateOf(feed.state, spec.id),
            shared: this.#shared,
            agents: announced(share, began),
          },
          lock,
        ).finally(() => {
          const alone = stops.alone();
          if (alone !== null) this.#stopped.set(spec.id, alone);
        }),
      ),
    );
    return ended.ok ? ended.value : ended;
  }

  /** A person forbade this Spec before the night came to it. */
  #forbidden(spec: SpecSlug, file: StopFile): Ending {
    const by = { why: `the ${file.name} file keeps ${spec} from running`, first: file.remove };
    this.#stopped.set(spec, by);
    return { kind: 'stopped', summary: 'nothing was started', exit: exitCodes.needsHuman, lines: [] };
  }

  /** What stopped Specs of this night, when the night itself was left alone. */
  stoppedAlone(): StoppedBy | null {
    const [first] = this.#stopped;
    if (first === undefined) return null;
    const whys = [...this.#stopped].map(([spec, { why }]) => why.replace(/ ended it$/, ` ended ${spec}`));
    const firsts = [...this.#stopped.values()].flatMap((by) => by.first ?? []);
    return { why: whys.join(', '), first: firsts.length === 0 ? null : firsts.join(' && ') };
  }

  /** Says what a Spec that never started really waits for. */
  #notStarted(id: SpecSlug): SpecOutcome {
    const root = this.#root(id, new Set());
    const outcome = root === null ? undefined : this.#outcomes.get(root);
    const why =
      root === null || outcome === undefined ? 'the night was over before' : `waits for ${root}, ${waitsFor(outcome)}`;
    return { spec: id, result: 'not-started', why, asks: false };
  }

  #root(id: SpecSlug, seen: Set<SpecSlug>): SpecSlug | null {
    seen.add(id);
    const spec = this.#night.specs.find((one) => one.id === id);
    for (const on of spec === undefined ? [] : this.#blockers(spec)) {
      if (this.#outcomes.has(on)) return on;
      const root = seen.has(on) ? null : this.#root(on, seen);
      if (root !== null) return root;
    }
    return null;
  }
}

/** The share of a Spec that tells when its first agent asks for a slot. */
function announced(share: AgentShare, began: () => void): AgentShare {
  return {
    join: (onRelease) => {
      began();
      return share.join(onRelease);
    },
    use: (run, signal) => {
      began();
      return share.use(run, signal);
    },
  };
}

function outcomeAtStart({ id, plan, failure }: BacklogSpec): SpecOutcome | null {
  switch (plan) {
    case 'run':
      return null;
    case 'proved':
      return { spec: id, result: 'proved', why: 'proved already', asks: false };
    case 'asking':
      return {
        spec: id,
        result: 'needs-human',
        why: `still asks, nothing was answered: giro status ${id}`,
        asks: true,
      };
    case 'wrong':
      return { spec: id, result: 'failed', why: failure === null ? '' : renderFailure(failure), asks: false };
    default:
      return unreachable(plan);
  }
}

function outcomeOf(spec: SpecSlug, ended: Result<Ending, Failure>, stopped: string | null): SpecOutcome {
  if (!ended.ok) return { spec, result: 'failed', why: renderFailure(ended.failure), asks: false };
  const results = { proof: 'proved', stopped: 'unfinished', 'needs-human': 'needs-human' } as const;
  const { kind, summary } = ended.value;
  const why = kind === 'stopped' && stopped !== null ? `${stopped}; ${summary}` : summary;
  return { spec, result: results[kind], why, asks: false };
}

function waitsFor({ result }: Pick<BacklogResult, 'result'>): string {
  switch (result) {
    case 'needs-human':
      return 'which needs a human';
    case 'failed':
      return 'which could not be run';
    case 'unfinished':
      return 'which is unfinished';
    case 'not-started':
    case 'proved':
      return 'which was not started';
    default:
      return unreachable(result);
  }
}
