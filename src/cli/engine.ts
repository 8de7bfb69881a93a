/** Composition of one run: joins the loops with git, worktrees, gates and the scheduler, and runs a Spec to its end. */
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { IssueId, IssueState, Oid } from '../issue.js';
import { runIssue } from '../loop/issue-loop.js';
import type { IssueLoopPorts, IssueRecord } from '../loop/ports.js';
import { runSpec, type AlongEnd, type SpecLoopPorts } from '../loop/spec-loop.js';
import { keepHeapAsItIs } from '../platform/heap.js';
import { lookForMarked } from '../platform/marked.js';
import { schedule } from '../scheduler/scheduler.js';
import type { BranchFacts } from '../store/integration.js';
import { findBase, findUserBase } from '../store/intake.js';
import { entriesOf } from '../store/history.js';
import { Journal } from '../store/journal.js';
import { ledgerOf } from '../store/ledger.js';
import type { RunLock } from '../store/lock.js';
import { readSpecAt } from '../store/read.js';
import { readBranches } from '../store/facts.js';
import { integrationRef } from '../store/refs.js';
import { codeTree, specsTree } from '../store/tree.js';
import { readAccepted, readWaivers } from '../store/waivers.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { Lane } from '../worktree/lane.js';
import { openBudget } from './budgeting.js';
import { estimatesOf } from './estimates.js';
import { judgeBase } from './baseline.js';
import type { EngineEnd, EngineParts, EngineRequest } from './engine-request.js';
import { finishSpec, land, landAlong, publish, type LandingPorts } from './landing.js';
import {
  checkedOutIn,
  journalOf,
  openJournals,
  openSpec,
  sayNotices,
  type OpenedSpec,
  type OpeningPorts,
} from './opening.js';
import { hooksNotice } from './hooks-notice.js';
import { leasingOf, openLeasing, type Leasing } from './leasing.js';
import { openLeftovers, type LeftoversPorts } from './leftovers.js';
import { planningOf } from './planning.js';
import { branchOf, movedBase, movedNotice } from './moved-base.js';
import { alongNotices } from './stacking.js';
import { Pickup } from './pickup.js';
import { submoduleNotices } from './submodules-notice.js';
import { withRedGreen } from './red-green.js';
import { openWorkshop, workRoot, type Workshop } from './workshop.js';

/** Everything of a run that is going on. */
interface Running {
  readonly request: EngineRequest;
  readonly opening: OpeningPorts;
  /** The Issues as they were read last; planning adds to them. */
  opened: OpenedSpec;
  readonly workshop: Workshop;
  readonly leasing: Leasing;
  readonly landing: LandingPorts;
  readonly states: Map<IssueId, IssueState>;
  readonly moving: Moving;
  readonly journals: Map<IssueId, Journal>;
  readonly pickup: Pickup;
  /** Answered Issues that the scheduler could not take any more. */
  readonly missed: Set<IssueId>;
  readonly stray: () => Promise<readonly string[]>;
}

/** What may still come to a landing. */
interface Moving {
  /** Issues that are being executed. */
  readonly issues: Set<IssueId>;
  /** Something ready is held back for a moment, and will be executed. */
  isHolding: boolean;
}

/** Runs a Spec, or one of its Issues, to its end. `lock`: permission to write the Spec's branches. */
export function runEngine(request: EngineRequest & { readonly lock: RunLock }): Promise<Result<EngineEnd, Failure>> {
  return runWith(request, { openWorkshop, openLeftovers, openLeasing, hooksNotice });
}

/** The same with these parts, by whoever holds the lock or has the repository alone. */
export async function runWith(request: EngineRequest, parts: EngineParts): Promise<Result<EngineEnd, Failure>> {
  const { git, prepared, clock, emit } = request;
  // All of it is git's to answer, and nothing waits for another's answer.
  const asked = {
    uncommitted: git.user.uncommitted(),
    hooks: parts.hooksNotice({ folder: request.top, own: request.own, policy: prepared.policy }),
  };
  asked.hooks.catch(() => undefined);
  const before = new Set(await asked.uncommitted);
  const { stack } = request;
  const known = prepared.intake.base ?? (prepared.tip === null ? stack.base : await findBase(git, prepared.tip));
  const base = known ?? git.user.head;
  const facts: BranchFacts = {
    ...{ git, base, spec: prepared.spec, giro: request.giro },
    now: () => clock.now(),
    iso: () => clock.iso(),
  };
  const opening = { git, prepared, facts, baseBranch: await branchOf(git, request.top), clock, emit };
  sayStarted(request, base);
  sayNotices({ prepared, emit }, [...before]);
  const hooks = await asked.hooks;
  if (hooks !== null) emit({ type: 'run.notice', level: 'warning', message: hooks });
  const { tree } = await git.readCommit(prepared.tip ?? base);
  for (const message of await submoduleNotices({ git, tree, top: request.top, policy: prepared.policy }))
    emit({ type: 'run.notice', level: 'warning', message });
  const leftovers = parts.openLeftovers({ ...request, ...leftoversOf(request), look: lookForMarked });
  const withstood = await leftovers.endEarlier();
  if (withstood !== null) return failed(withstood);
  const opened = await openSpec(opening);
  if (!opened.ok) return opened;
  for (const message of await alongNotices(git, stack, opened.value.fresh))
    emit({ type: 'run.notice', level: 'info', message });
  const userBase = (await findUserBase(git, opened.value.tip)) ?? base;
  const baseSpecs = await specsTree(git, (await git.readCommit(userBase)).tree);
  const budget = await openBudget(request, opened.value);
  const workshop = await parts.openWorkshop({ ...request, leftovers, baseSpecs, budget, remember: true });
  if (!workshop.ok) return workshop;
  const leasing = await parts.openLeasing(leasingOf(request));
  try {
    const stray = async (): Promise<readonly string[]> =>
      (await git.user.uncommitted()).filter((file) => !before.has(file));
    const running = run(request, { opening, opened: opened.value, workshop: workshop.value, leasing, stray });
    await openRecords(running);
    keepHeapAsItIs();
    const end = await runSpec({ ...specPorts(running), ...planning(running) });
    await clearFolders(running);
    const { tip } = running.landing.lane;
    const waivers = await readWaivers(git, prepared.spec, tip);
    return ok({ end, tip, states: running.states, waivers, stray: await stray() });
  } finally {
    await leftovers.endOwn();
    await leasing.close();
    await workshop.value.close();
  }
}

function leftoversOf({
  git,
  prepared,
  cacheFolder,
}: EngineRequest): Pick<LeftoversPorts, 'commonDir' | 'spec' | 'root' | 'graceMs' | 'limits'> {
  const { policy, spec } = prepared;
  const root = workRoot({ git, prepared, cacheFolder });
  return { commonDir: git.commonDir, spec, root, graceMs: policy.limits.graceMs, limits: policy.limits };
}

function sayStarted(request: EngineRequest, base: Oid): void {
  const { prepared, emit } = request;
  const { policy } = prepared;
  emit({
    type: 'run.started',
    giro: request.giro,
    spec: prepared.spec,
    title: prepared.parsed.spec.title,
    concurrency: request.shared.agents.concurrency,
    gateLimit: policy.limits.gates,
    gates: policy.gates.map((gate) => gate.name),
    attempts: policy.budget.attempts,
    base,
    tip: prepared.tip,
    folder: request.runFolder,
  });
}

function run(
  request: EngineRequest,
  parts: Pick<Running, 'opening' | 'opened' | 'workshop' | 'leasing' | 'stray'>,
): Running {
  const { git, prepared, clock, signal, emit } = request;
  const moving: Moving = { issues: new Set(), isHolding: false };
  const lane: Lane = new Lane({
    git,
    ref: integrationRef(prepared.spec),
    tip: parts.opened.tip,
    checkedOut: () => checkedOutIn(git, integrationRef(prepared.spec)),
    // What waits for a held lease, or for what is held, cannot move either; what waits for a slot has those of the held.
    nothingElseMoves: () => moving.issues.size === lane.held && !moving.isHolding,
    clock,
    signal,
  });
  const states = new Map(parts.opened.issues.map((issue) => [issue.id, issue.state]));
  const pickup = new Pickup({ ...parts, lane, states, only: request.only });
  const landing: LandingPorts = {
    facts: parts.opening.facts,
    lane,
    policy: prepared.policy,
    verifier: parts.workshop.verifier,
    signal,
    emit,
    hasAnswers: (tip) => pickup.hasAnswers(tip),
  };
  return { request, ...parts, landing, states, moving, pickup, journals: new Map(), missed: new Set() };
}

function specPorts(running: Running): Omit<SpecLoopPorts, keyof ReturnType<typeof planning>> {
  const { request, landing, workshop } = running;
  const { git, prepared, signal, noMore, emit } = request;
  return {
    spec: prepared.spec,
    title: prepared.parsed.spec.title,
    policy: prepared.policy,
    verifier: workshop.verifier,
    budget: workshop.budget,
    signal,
    noMore,
    emit,
    tip: () => landing.lane.tip,
    base: landing.facts.base,
    tipCode: () => codeOf(git, landing.lane.tip),
    baseline: () =>
      judgeBase({
        git,
        workshop,
        policy: prepared.policy,
        base: landing.facts.base,
        tip: landing.lane.tip,
        signal,
        emit,
      }),
    states: () => running.states,
    takeAlong: () => takeAlong(running),
    takeBase: () => (prepared.policy.integrate.base === 'on-validate' ? takeBase(running) : Promise.resolve(null)),
    runIssues: () => runIssues(running),
    finish: async (end) => {
      // Before the Spec is done: nobody would come again to clear up after a kill.
      if (end.validated === 'pass') await clearFolders(running);
      return finishSpec(landing, end);
    },
    only: request.only,
    asked: prepared.before === 'needs-human',
    accepted: () => acceptedFor(running),
    shown: workshop.shown,
  };
}

/** One after the other, before anything starts. */
async function takeAlong(running: Running): Promise<AlongEnd | null> {
  const { request, landing } = running;
  for (const along of request.stack.along) {
    const end = await landAlong(landing, along);
    if (end !== null) return end;
  }
  return request.prepared.policy.integrate.base === 'on-validate' ? null : takeBase(running);
}

/** Takes along what moved on the person's branch, or says that it did. */
async function takeBase({ request, landing }: Running): Promise<AlongEnd | null> {
  const { git, prepared, emit } = request;
  const along = await movedBase(git, landing.lane.tip);
  if (along === null) return null;
  const { integrate } = prepared.policy;
  emit({ type: 'run.notice', level: 'info', message: movedNotice(along, integrate, prepared.spec) });
  return integrate.base === 'never' ? null : landAlong(landing, along);
}

async function codeOf(git: OpenedGit, commit: Oid): Promise<Oid> {
  return codeTree(git, (await git.readCommit(commit)).tree);
}

function planning(running: Running): ReturnType<typeof planningOf> {
  const { request, landing, workshop } = running;
  const { prepared, clock, noMore, emit, jitter, shared, agents } = request;
  return planningOf({
    ...landing,
    policy: prepared.policy,
    planner: workshop.planner,
    budget: workshop.budget,
    clock,
    emit,
    jitter,
    parking: shared.parking(prepared.policy.roles.planner),
    noMore,
    inSlot: (run) => agents.use(run, noMore),
    onPlanned: (issues) => {
      for (const issue of issues) running.states.set(issue, 'ready');
    },
  });
}

/** What was planned since the Issues were read is read too. */
async function withPlanned(running: Running): Promise<OpenedSpec> {
  const { opened, states, landing, opening } = running;
  if (opened.issues.length === states.size) return opened;
  const read = await readSpecAt(opening.git, landing.lane.tip, opening.prepared.spec);
  if (!read.ok) throw new Error(`the Issues cannot be read: ${read.failure.diagnostics[0]?.message ?? ''}`);
  running.opened = { ...opened, tip: landing.lane.tip, issues: read.value.spec.issues };
  return running.opened;
}

/** What a person accepted for the Spec; for an Issue that is run alone, what they accepted for it too. */
async function acceptedFor({ request, landing, opened }: Running): Promise<ReadonlySet<string>> {
  const { git, prepared, only } = request;
  const { tip } = landing.lane;
  const own = opened.issues.find((issue) => issue.id === only);
  const paths = [`${prepared.parsed.spec.folder}/SPEC.md`, ...(own === undefined ? [] : [own.path])];
  const ids = await Promise.all(paths.map((path) => readAccepted(git, tip, path)));
  return new Set(ids.flatMap((set) => [...set]));
}

/** Opens the records of what an earlier run left. */
/** Removes the folders of what is integrated, also those that a giro left that was killed. */
async function clearFolders({ request, opened, workshop, states }: Running): Promise<void> {
  const { git, prepared } = request;
  if (opened.fresh) return workshop.clear(new Map());
  const branches = await readBranches(git, prepared.spec);
  const known = [...states].map(async ([id, state]): Promise<[IssueId, readonly Oid[]][]> => {
    const branch = branches.get(id);
    if (state !== 'done') return [];
    return [[id, branch === undefined ? [] : [(await git.readCommit(branch)).tree]]];
  });
  await workshop.clear(new Map((await Promise.all(known)).flat()));
}

async function openRecords(running: Running): Promise<void> {
  for (const [id, journal] of await openJournals(running.opening, running.opened)) {
    running.journals.set(id, journal);
    running.workshop.budget.take(journal.id, ledgerOf(journal.entries));
    // Escalated on its own branch, but giro ended before that could be seen on the integration branch.
    if (journal.standing === 'needs-human' && journal.issue.state !== 'needs-human') await escalated(running, journal);
  }
}

/** Runs until nothing can run any more, also nothing that was answered in the last moment. */
async function runIssues(running: Running): Promise<void> {
  const { signal, noMore } = running.request;
  do {
    await takeAnswers(running);
    await runOnce(running);
    if (signal.aborted || noMore.aborted) return;
  } while ((await takeAnswers(running)) || hasMissed(running));
}

async function takeAnswers({ pickup, journals }: Running): Promise<boolean> {
  const found = await pickup.take();
  for (const [id, journal] of found) journals.set(id, journal);
  return found.size > 0;
}

/** An answer was taken up when the scheduler had just ended. */
function hasMissed({ missed }: Running): boolean {
  const any = missed.size > 0;
  missed.clear();
  return any;
}

/** Runs every Issue that can run, and those that are answered meanwhile. */
async function runOnce(running: Running): Promise<void> {
  const { request, opening, journals, landing, states, moving, pickup, missed } = running;
  const opened = await withPlanned(running);
  const { agents, clock, signal, noMore, only } = request;
  const ports = loopPorts(running);
  const done = new AbortController();
  let reopen: (id: IssueId) => boolean = () => false;
  const watching = pickup.watch((found) => {
    for (const [id, journal] of found) {
      journals.set(id, journal);
      if (!reopen(id)) missed.add(id);
    }
  }, done.signal);
  try {
    await schedule({
      issues: opened.issues.map((issue) => ({
        ...issue,
        settled: states.get(issue.id) === 'done',
        blocked: (only !== null && issue.id !== only) || atRest(states.get(issue.id)),
        resuming: journals.has(issue.id),
      })),
      agents,
      estimate: estimatesOf(
        new Map(opened.issues.map((issue) => [issue.id, journals.get(issue.id)?.entries ?? entriesOf(issue)])),
      ),
      clock,
      signal,
      noMore,
      others: running.leasing,
      onLease: (issue, holder, again) => {
        if (holder === null) request.emit({ type: 'lease.freed', issue });
        else request.emit({ type: 'lease.refused', issue, holder, ...(again ? { again } : {}) });
      },
      onLanded: request.landed,
      onHold: (isHolding) => {
        moving.isHolding = isHolding;
      },
      onStart: (handle) => {
        reopen = handle;
      },
      execute: async (id, slots) => {
        const issue = opened.issues.find((one) => one.id === id);
        if (issue === undefined) throw new Error(`no such Issue: ${id}`);
        moving.issues.add(id);
        try {
          const journal = journals.get(id) ?? (await journalOf(opening, opened, { issue, tip: landing.lane.tip }));
          const end = await runIssue(ports, journal, slots);
          if (end === 'integrated') states.set(id, 'done');
          return end;
        } finally {
          moving.issues.delete(id);
        }
      },
    });
  } finally {
    done.abort();
    await watching;
  }
}

function atRest(state: IssueState | undefined): boolean {
  return state === 'needs-human' || state === 'wontfix';
}

function loopPorts(running: Running): IssueLoopPorts {
  const { request, workshop, landing } = running;
  const { prepared, clock, signal, noMore, emit, jitter } = request;
  return {
    ...workshop,
    verifier: withRedGreen(workshop.verifier, {
      ...{ git: request.git, policy: prepared.policy, clock, emit },
      issues: () => running.opened.issues,
    }),
    spec: prepared.parsed.spec,
    policy: prepared.policy,
    clock,
    signal,
    noMore,
    emit,
    tip: () => landing.lane.tip,
    land: (record) => land(landing, asJournal(record)),
    publishEscalation: (record) => escalated(running, asJournal(record)),
    strayFiles: running.stray,
    jitter,
  };
}

async function escalated(running: Running, journal: Journal): Promise<void> {
  const written = await publish(running.landing, journal);
  running.pickup.rests(journal);
  running.states.set(journal.id, 'needs-human');
  if (written.kind === 'recorded') return;
  const message = `the packet of ${journal.id} is only on its own branch: ${written.message}`;
  running.request.emit({ type: 'run.notice', level: 'warning', message, issue: journal.id });
}

/** The records that the loop is given are the journals opened here. */
function asJournal(record: IssueRecord): Journal {
  if (!(record instanceof Journal)) throw new Error(`not a record of this run: ${record.issue.id}`);
  return record;
}
