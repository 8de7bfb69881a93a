/** Composition of one run: joins the loops with git, worktrees, gates and the scheduler, and runs a Spec to its end. */
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import { createDriver } from '../drivers/create.js';
import type { Emit, EventBody, IssueFacts } from '../event.js';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { createVerdictCache } from '../gates/cache.js';
import { findShell } from '../gates/shell.js';
import type { Verdict } from '../gates/gate.js';
import { dueGates } from '../gates/gate.js';
import { createVerifier } from '../gates/verify.js';
import type { Issue, IssueId, IssueState, Oid } from '../issue.js';
import { runIssue } from '../loop/issue-loop.js';
import { gateNotes } from '../loop/notes.js';
import type { IssueLoopPorts, IssueRecord, LaneAnswer } from '../loop/ports.js';
import { runSpec, specGates, type SpecEnd } from '../loop/spec-loop.js';
import type { Clock } from '../platform/clock.js';
import { childEnvironment, type Environment } from '../platform/environment.js';
import { buildGraph } from '../scheduler/graph.js';
import { schedule } from '../scheduler/scheduler.js';
import { readFacts, type IssueBranches } from '../store/facts.js';
import { appendEscalation, appendValidation } from '../store/history.js';
import { escalationCommit, intakeCommit, landedCommit, specStateCommit, type BranchFacts } from '../store/integration.js';
import { findBase } from '../store/intake.js';
import { openJournal, type Journal } from '../store/journal.js';
import type { RunLock } from '../store/lock.js';
import { readSpecAt } from '../store/read.js';
import { integrationRef } from '../store/refs.js';
import { codeTree, specsTree } from '../store/tree.js';
import { trailer } from '../store/trailers.js';
import { createCheckouts } from '../worktree/checkout.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { Lane } from '../worktree/lane.js';
import { saveCommit } from '../worktree/salvage.js';
import { createSetup } from '../worktree/setup.js';
import { createSlots, slotOffset, type Slot } from '../worktree/slots.js';
import { createWorktrees } from '../worktree/worktrees.js';
import { workFolders } from './folders.js';
import type { Prepared } from './prepare.js';
import { lackingIn } from './lacks.js';
import PQueue from 'p-queue';

/** What a run is given; everything was checked before. */
export interface EngineRequest {
  readonly git: OpenedGit;
  readonly prepared: Prepared;
  readonly lock: RunLock;
  readonly top: string;
  /** Only this Issue; `null`: all of them. */
  readonly only: IssueId | null;
  readonly concurrency: number;
  readonly own: Readonly<Record<string, string | undefined>>;
  readonly cacheFolder: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly emit: Emit;
  readonly runFolder: string;
  /** A short path for the temporary folders of agents and gates. */
  readonly temporary: string;
  readonly giro: string;
  readonly jitter: () => number;
}

/** How a run ended, with what the last lines need. */
export interface EngineEnd {
  readonly end: SpecEnd;
  readonly tip: Oid;
  readonly base: Oid;
  readonly states: ReadonlyMap<IssueId, IssueState>;
  /** Why an Issue was handed to a human in this run. */
  readonly questions: ReadonlyMap<IssueId, string>;
  /** Files of the person's checkout that changed during the run. */
  readonly stray: readonly string[];
}

/** Runs a Spec, or one of its Issues, to its end. */
export async function runEngine(request: EngineRequest): Promise<Result<EngineEnd, Failure>> {
  const engine = new Engine(request);
  try {
    return await engine.run();
  } finally {
    await engine.close();
  }
}

class Engine {
  readonly #request: EngineRequest;
  readonly #closers: (() => Promise<void>)[] = [];
  readonly #states = new Map<IssueId, IssueState>();
  readonly #questions = new Map<IssueId, string>();

  constructor(request: EngineRequest) {
    this.#request = request;
  }

  async close(): Promise<void> {
    for (const close of this.#closers.reverse()) await close();
  }

  async run(): Promise<Result<EngineEnd, Failure>> {
    const { git, prepared, emit, clock, signal } = this.#request;
    const before = new Set(await git.user.uncommitted());
    const base = prepared.tip === null ? git.user.head : ((await findBase(git, prepared.tip)) ?? git.user.head);
    const facts: BranchFacts = {
      git,
      spec: prepared.spec,
      base,
      now: () => clock.now(),
      iso: () => clock.iso(),
    };
    this.#started(base);
    this.#notices([...before]);
    const opened = await this.#takeIn(facts, base);
    if (!opened.ok) return opened;
    const moving = new Set<IssueId>();
    const lane: Lane = new Lane({
      git,
      ref: integrationRef(prepared.spec),
      tip: opened.value,
      checkedOut: () => this.#checkedOut(),
      nothingElseMoves: () => moving.size > 0 && moving.size === lane.held,
      clock,
      signal,
    });
    const issues = await this.#issues(opened.value);
    if (!issues.ok) return issues;
    this.#announce(base, opened.value, issues.value);
    const stray = async (): Promise<readonly string[]> => (await git.user.uncommitted()).filter((file) => !before.has(file));
    const made = await this.#loopPorts({ facts, lane, base, stray });
    if (!made.ok) return made;
    const ports = made.value;
    const end = await runSpec({
      spec: prepared.spec,
      policy: prepared.policy,
      verifier: ports.verifier,
      signal,
      emit,
      tip: () => lane.tip,
      tipCode: async () => codeTree(git, (await git.readCommit(lane.tip)).tree),
      states: () => this.#states,
      runIssues: () => this.#runIssues({ ports, lane, facts, moving, issues: issues.value }),
      finish: (finish) => this.#finish(facts, lane, finish),
    });
    return ok({ end, tip: lane.tip, base, states: this.#states, questions: this.#questions, stray: await stray() });
  }

  #started(base: Oid): void {
    const { prepared, emit, concurrency, giro, runFolder } = this.#request;
    const { policy } = prepared;
    emit({
      type: 'run.started',
      giro,
      spec: prepared.spec,
      title: prepared.parsed.spec.title,
      concurrency,
      gateLimit: policy.limits.gates,
      gates: policy.gates.map((gate) => gate.name),
      attempts: policy.budget.attempts,
      base,
      tip: prepared.tip,
      folder: runFolder,
    });
  }

  #notices(uncommitted: readonly string[]): void {
    const { prepared } = this.#request;
    const folder = `${prepared.parsed.spec.folder}/`;
    const [spec, elsewhere] = [
      uncommitted.filter((file) => file.startsWith(folder)),
      uncommitted.filter((file) => !file.startsWith(folder)),
    ];
    if (spec.length > 0) this.#say('info', `${count(spec.length, 'uncommitted file')} of the Spec taken as they stand: ${spec.join(', ')}`);
    if (elsewhere.length > 0) {
      this.#say('info', `${count(elsewhere.length, 'uncommitted change')} elsewhere in your checkout ${elsewhere.length === 1 ? 'is' : 'are'} not in the base`);
    }
    for (const ignored of prepared.parsed.spec.ignored) this.#say('info', `not an Issue, ignored: ${ignored.path} (${ignored.reason})`);
    const { intake } = prepared;
    for (const path of intake.removed) this.#say('warning', `${path} is gone from your checkout: taken out of the Spec; its branch is kept`);
    for (const path of intake.editedAfterwards) {
      this.#say('warning', `${path} was edited after it was integrated: it was built from the earlier text, and is not run again`);
    }
  }

  #say(level: 'info' | 'warning', message: string, issue?: IssueId): void {
    this.#request.emit({ type: 'run.notice', level, message, ...(issue === undefined ? {} : { issue }) });
  }

  /** Puts the Spec's folder onto the integration branch when there is something to put. */
  async #takeIn(facts: BranchFacts, base: Oid): Promise<Result<Oid, Failure>> {
    const { git, prepared, emit } = this.#request;
    const { tip, intake } = prepared;
    const idle = tip !== null && intake.edited.length === 0 && intake.answered.length === 0;
    if (idle && prepared.before === 'active') return ok(tip);
    const folder = await this.#checkedOut();
    if (folder !== null) return failed(checkedOutFailure(prepared.spec, folder));
    const parent = tip ?? base;
    const commit =
      idle && prepared.before !== 'needs-human'
        ? tip
        : await intakeCommit(facts, {
            parent,
            read: prepared.read ?? [...intake.files].map(([path, content]) => ({ path, bytes: Buffer.from(content) })),
            intake,
            kind: tip === null ? 'snapshot' : 'import',
          });
    if (commit === tip) return ok(commit);
    const moved = await git.moveRef(integrationRef(prepared.spec), commit, tip);
    if (!moved.ok) {
      const message = moved.failure.kind === 'ref-refused' ? moved.failure.message : `giro/${prepared.spec} moved while the run was starting`;
      return failed({ kind: 'environment', message, hint: 'run the same command again' });
    }
    if (tip !== null && intake.edited.length > 0) {
      emit({ type: 'spec.imported', spec: prepared.spec, tip: commit, files: intake.edited });
    }
    return ok(commit);
  }

  /** The Issues as the tip has them, and how they stand. */
  async #issues(tip: Oid): Promise<Result<Opened, Failure>> {
    const { git, prepared } = this.#request;
    const parsed = await readSpecAt(git, tip, prepared.spec);
    if (!parsed.ok) return parsed;
    const spec = parsed.value.spec;
    const graph = buildGraph(spec.issues);
    const facts = await readFacts(git, { spec, branches: prepared.branches, wave: (id) => graph.wave(id) });
    for (const issue of spec.issues) this.#states.set(issue.id, issue.state);
    return ok({ issues: spec.issues, facts, fresh: prepared.tip === null });
  }

  #announce(base: Oid, tip: Oid, opened: Opened): void {
    const { emit, prepared } = this.#request;
    const body: EventBody =
      prepared.tip === null
        ? { type: 'spec.snapshotted', spec: prepared.spec, base, tip, issues: opened.facts }
        : { type: 'run.recovered', spec: prepared.spec, tip, issues: opened.facts };
    emit(body);
  }

  async #loopPorts(parts: {
    readonly facts: BranchFacts;
    readonly lane: Lane;
    readonly base: Oid;
    readonly stray: () => Promise<readonly string[]>;
  }): Promise<Result<IssueLoopPorts, Failure>> {
    const { git, prepared, own, clock, signal, emit, runFolder, cacheFolder, top } = this.#request;
    const { policy } = prepared;
    const root = join(policy.worktree.root ?? join(cacheFolder, 'giro'), repositoryId(git.commonDir), prepared.spec);
    const slots = createSlots({ temporary: this.#request.temporary, offset: slotOffset(git.commonDir, prepared.spec) });
    this.#closers.push(() => slots.close());
    const notice = (message: string, issue?: IssueId): void => {
      this.#say('warning', message, issue);
    };
    const shell = await findShell(childEnvironment(own));
    if (!shell.ok) return failed({ kind: 'environment', message: shell.failure, hint: 'install bash' });
    const setup = createSetup({
      git,
      policy: policy.worktree,
      userTop: top,
      shell: shell.value,
      environment: (slot) => ({ ...childEnvironment(own), CI: 'true', ...slotEnvironment(slot), GIRO_SPEC: prepared.spec }),
      logFolder: join(runFolder, 'setup'),
      graceMs: policy.limits.graceMs,
      signal,
      clock,
      notice,
    });
    const worktrees = createWorktrees({ git, spec: prepared.spec, root, policy: policy.worktree, slots, setup, clock, notice });
    const checkouts = createCheckouts({
      git,
      policy: policy.worktree,
      root: join(root, 'gates'),
      slots,
      setup,
      baseSpecs: await specsTree(git, (await git.readCommit(parts.base)).tree),
      limit: policy.limits.gates,
      notice,
    });
    this.#closers.push(() => checkouts.close(), () => worktrees.close());
    const gateLimit = new PQueue({ concurrency: policy.limits.gates });
    const verifier = createVerifier({
      withCheckout: checkouts.withCheckout,
      cache: createVerdictCache(join(git.commonDir, 'giro', 'verdicts')),
      slots: (run) => gateLimit.add(run),
      emit,
      clock,
      environment: (_slot, gate) => ({ ...childEnvironment(own, gate.env), GIRO_SPEC: prepared.spec }),
      logFolder: join(runFolder, 'gates'),
      graceMs: policy.limits.graceMs,
      toolFingerprint: fingerprint(policy.worktree, own),
      lacks: (checkout) => lackingIn(checkout, top),
    });
    const driver = policy.drivers.byName.get(policy.roles.worker);
    if (driver === undefined) throw new Error(`no such driver: ${policy.roles.worker}`);
    return ok({
      spec: prepared.parsed.spec,
      policy,
      driver: createDriver(driver, { clock, repository: top, own }),
      folders: workFolders(git, worktrees),
      verifier,
      clock,
      signal,
      emit,
      tip: () => parts.lane.tip,
      land: (record) => this.#land(parts, record, verifier),
      publishEscalation: (record) => this.#publish(parts, record),
      environment: ({ issue, attempt, folder, envelopeFile }) => ({
        ...childEnvironment(own, driver.env),
        GIRO_ROLE: 'worker',
        GIRO_SPEC: prepared.spec,
        GIRO_ISSUE: issue,
        GIRO_ATTEMPT: String(attempt),
        GIRO_ENVELOPE: envelopeFile,
        ...slotEnvironment(folder.slot),
      }),
      logFile: (issue, attempt) => join(runFolder, 'agents', `${issue}.${String(attempt)}.log`),
      envelopeFile: (issue, attempt) => join(runFolder, 'agents', `${issue}.${String(attempt)}.envelope.json`),
      strayFiles: parts.stray,
      jitter: this.#request.jitter,
    });
  }

  async #runIssues(parts: {
    readonly ports: IssueLoopPorts;
    readonly lane: Lane;
    readonly facts: BranchFacts;
    readonly moving: Set<IssueId>;
    readonly issues: Opened;
  }): Promise<void> {
    const { prepared, concurrency, clock, signal, only } = this.#request;
    const { ports, moving } = parts;
    const byId = new Map(parts.issues.issues.map((issue) => [issue.id, issue]));
    const journals = await this.#openJournals(parts.issues, parts.lane, ports);
    const wanted = (id: IssueId): boolean => only === null || id === only;
    await schedule({
      issues: parts.issues.issues.map((issue) => ({
        id: issue.id,
        dependsOn: issue.dependsOn,
        touches: issue.touches,
        resources: issue.resources,
        settled: issue.state === 'done',
        blocked: !wanted(issue.id) || issue.state === 'wontfix' || journals.get(issue.id)?.standing === 'needs-human',
        resuming: journals.get(issue.id)?.commit != null,
      })),
      concurrency,
      estimate: () => 1,
      clock,
      signal,
      execute: async (id, slots) => {
        const journal = journals.get(id) ?? (await this.#openJournal(byId, id, parts, prepared.branches));
        moving.add(id);
        try {
          const end = await runIssue(ports, journal, slots);
          if (end === 'integrated') this.#states.set(id, 'done');
          return end;
        } finally {
          moving.delete(id);
        }
      },
    });
  }

  /** Opens the records of Issues that have a branch; says which of them an earlier run left asking. */
  async #openJournals(opened: Opened, lane: Lane, ports: IssueLoopPorts): Promise<ReadonlyMap<IssueId, Journal>> {
    const { prepared } = this.#request;
    const journals = new Map<IssueId, Journal>();
    for (const issue of opened.issues) {
      const branch = prepared.branches.get(issue.id);
      if (issue.state === 'done' || issue.state === 'wontfix') continue;
      if (issue.state === 'needs-human') this.#states.set(issue.id, 'needs-human');
      if (branch === undefined) continue;
      const journal = await this.#journal(issue, { tip: lane.tip, branch, fresh: opened.fresh });
      journals.set(issue.id, journal);
      // Escalated on its own branch, but giro ended before it could be seen on the integration branch.
      if (journal.standing === 'needs-human' && issue.state !== 'needs-human') await ports.publishEscalation(journal);
    }
    return journals;
  }

  async #openJournal(
    byId: ReadonlyMap<IssueId, Issue>,
    id: IssueId,
    parts: { readonly lane: Lane; readonly issues: Opened },
    branches: IssueBranches,
  ): Promise<Journal> {
    const issue = byId.get(id);
    if (issue === undefined) throw new Error(`no such Issue: ${id}`);
    return this.#journal(issue, { tip: parts.lane.tip, branch: branches.get(id) ?? null, fresh: parts.issues.fresh });
  }

  /** An Issue branch that is integrated, or older than this branch of the Spec, is not continued but never lost. */
  async #journal(issue: Issue, at: { readonly tip: Oid; readonly branch: Oid | null; readonly fresh: boolean }): Promise<Journal> {
    const { git, prepared, clock } = this.#request;
    const ports = { git, spec: prepared.spec, clock };
    if (at.branch === null) return openJournal(ports, { issue, ...at });
    const contained = await git.isAncestor(at.branch, at.tip);
    if (at.fresh && !contained) {
      const saved = await saveCommit(git, { spec: prepared.spec, issue: issue.id }, at.branch);
      this.#say('warning', `an older branch of ${issue.id} was found; its work is saved as ${saved} and not continued`, issue.id);
    }
    return openJournal(ports, { issue, tip: at.tip, branch: at.branch, fresh: at.fresh || contained });
  }

  async #land(
    parts: { readonly facts: BranchFacts; readonly lane: Lane },
    record: IssueRecord,
    verifier: IssueLoopPorts['verifier'],
  ): Promise<LaneAnswer> {
    const { emit, prepared, signal } = this.#request;
    const journal = asJournal(record);
    const issue = journal.id;
    const landing = await parts.lane.land<Verdict>({
      mine: () => journal.standIn(),
      onCandidate: (tip, tree) => {
        emit({ type: 'candidate.made', issue, tip, tree });
      },
      verify: (codeTree) =>
        verifier.verify({
          scope: 'integration',
          issue,
          gates: dueGates(prepared.policy.gates, 'integration', journal.issue.gates),
          codeTree,
          attempt: journal.attempt,
          signal,
        }),
      commit: (tip, code, verdict) => landedCommit(parts.facts, { tip, code, journal, gates: gateNotes(verdict) }),
      onHeld: (message) => {
        emit({ type: 'lane.held', issue, message });
      },
    });
    switch (landing.kind) {
      case 'landed':
        emit({ type: 'issue.integrated', issue, commit: landing.commit, attempts: journal.attempt });
        return landing;
      case 'conflict': {
        emit({ type: 'candidate.conflicted', issue, tip: landing.tip, files: landing.files });
        const findings = landing.files.map((file) => ({ file, message: 'conflicts with what has landed meanwhile' }));
        return { kind: 'rejected', tip: landing.tip, gates: [], findings };
      }
      case 'red':
        emit({ type: 'candidate.rejected', issue, tip: landing.tip, findings: landing.verdict.findings });
        return { kind: 'rejected', tip: landing.tip, gates: gateNotes(landing.verdict), findings: landing.verdict.findings };
      case 'held':
        emit({ type: 'lane.held', issue, message: landing.message });
        this.#questions.set(issue, landing.message);
        return landing;
      case 'stopped':
        return landing;
    }
  }

  async #publish(parts: { readonly facts: BranchFacts; readonly lane: Lane }, record: IssueRecord): Promise<void> {
    const journal = asJournal(record);
    const written = await parts.lane.record((tip) => escalationCommit(parts.facts, { tip, journal }));
    this.#states.set(journal.id, 'needs-human');
    if (written.kind === 'held') this.#say('warning', `${journal.id}: its packet is only on its own branch: ${written.message}`, journal.id);
  }

  async #finish(
    facts: BranchFacts,
    lane: Lane,
    finish: Parameters<Parameters<typeof runSpec>[0]['finish']>[0],
  ): ReturnType<Parameters<typeof runSpec>[0]['finish']> {
    const { clock, prepared } = this.#request;
    const at = clock.iso();
    const { validated } = finish;
    const append =
      validated === null
        ? undefined
        : (history: string): string => {
            const told = appendValidation(history, { at, tip: lane.tip, verdict: validated, gates: finish.gates });
            return validated === 'pass' ? told : appendEscalation(told, { at, cause: 'validate-red', packet: validatePacket(prepared) });
          };
    return lane.record((tip) =>
      specStateCommit(facts, {
        tip,
        state: finish.state,
        checkpoint: validated === null ? 'state' : 'validated',
        subject: validated === 'pass' ? `${prepared.spec}: validated` : `${prepared.spec}: needs a human`,
        ...(append === undefined ? {} : { append }),
        ...(validated === 'pass' ? { trailers: { 'Giro-Validated': `${finish.code} ${gatesDigest(prepared)}` } } : {}),
      }),
    );
  }

  async #checkedOut(): Promise<string | null> {
    const { git, prepared } = this.#request;
    return checkedOutIn(git, integrationRef(prepared.spec));
  }
}

interface Opened {
  readonly issues: readonly Issue[];
  readonly facts: readonly IssueFacts[];
  /** The integration branch was made by this run. */
  readonly fresh: boolean;
}

/** Finds the folder whose HEAD a branch is; `null` when there is none. */
export async function checkedOutIn(git: OpenedGit, ref: string): Promise<string | null> {
  return (await git.user.headsOfWorktrees()).find((worktree) => worktree.ref === ref)?.path ?? null;
}

/** Says why a Spec whose branch is checked out cannot start. */
export function checkedOutFailure(spec: string, folder: string): Failure {
  return {
    kind: 'environment',
    message: `giro/${spec} is checked out in ${folder}; giro does not move a branch under you`,
    hint: `free it with: git -C ${folder} switch --detach`,
  };
}

/** Tells whether the tip of a done Spec still carries the proof of its gates. */
export async function proofHolds(git: OpenedGit, prepared: Prepared, tip: Oid): Promise<boolean> {
  const commit = await git.readCommit(tip);
  const validated = trailer(commit.message, 'Giro-Validated');
  return validated === `${await codeTree(git, commit.tree)} ${gatesDigest(prepared)}`;
}

/** What a proof is bound to beside the tree: the definitions of the gates. */
function gatesDigest(prepared: Prepared): string {
  const definitions = [...specGates(prepared.policy), ...dueGates(prepared.policy.gates, 'integration', [])].map(({ name, run, on }) => ({ name, run, on }));
  return createHash('sha256').update(JSON.stringify(definitions)).digest('hex').slice(0, 16);
}

function validatePacket(prepared: Prepared): readonly string[] {
  const { spec } = prepared;
  return [
    `asked for: ${prepared.parsed.spec.title}`,
    'tried: every Issue is integrated, but the Spec as a whole is red',
    'question: which Issue is missing, or which gate is wrong?',
    `option: add an Issue in docs/specs/${spec}/issues/ and run again`,
    `then: giro implement ${spec}`,
  ];
}

function asJournal(record: IssueRecord): Journal {
  // The records of this run are the journals that it opened itself.
  return record as Journal;
}

function slotEnvironment(slot: Slot): Environment {
  return { GIRO_SLOT: String(slot.number), GIRO_PORT_BASE: String(slot.portBase), TMPDIR: slot.temporary };
}

function repositoryId(commonDir: string): string {
  const name = basename(commonDir) === '.git' ? basename(join(commonDir, '..')) : basename(commonDir);
  const safe = name.toLowerCase().replace(/[^a-z0-9]+/g, '-').slice(0, 40);
  return `${safe}-${createHash('sha256').update(commonDir).digest('hex').slice(0, 8)}`;
}

function fingerprint(policy: Prepared['policy']['worktree'], own: Readonly<Record<string, string | undefined>>): string {
  const { setup, inputs, copy, link } = policy;
  const tools = [process.version, process.platform, process.arch, own['PATH'] ?? ''];
  return createHash('sha256').update(JSON.stringify([setup ?? '', inputs, copy, link, tools])).digest('hex');
}

function count(number: number, noun: string): string {
  return `${String(number)} ${noun}${number === 1 ? '' : 's'}`;
}
