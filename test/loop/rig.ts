import { createHash } from 'node:crypto';
import type { DriverFor, DriverRequest } from '../../src/drivers/driver.js';
import type { WorkerEnvelope, WorkerOutcome, WorkerResult } from '../../src/drivers/worker.js';
import type { EventBody } from '../../src/event.js';
import type { GateCause, GateVerdict, Verdict, VerifyRequest } from '../../src/gates/gate.js';
import {
  parseIssueId,
  parseOid,
  parseSpecSlug,
  type Finding,
  type Issue,
  type IssueId,
  type Oid,
} from '../../src/issue.js';
import type { IssueEnd } from '../../src/loop/decide.js';
import { runIssue } from '../../src/loop/issue-loop.js';
import { RunBudget, SpecBudget, type Charged } from '../../src/loop/budget.js';
import { Parking } from '../../src/loop/parking.js';
import type { IssueLoopPorts, IssueRecord, LaneAnswer, Taken, WorkFolders } from '../../src/loop/ports.js';
import type { GateDefinition, Policy } from '../../src/policy.js';
import {
  blockedInARow,
  budgetUsed,
  couldNotBeJudged,
  lastAttempt,
  lastFindings,
  lastQuestion,
  noProgress,
  openFindings,
  readHistory,
  wasTakenBack,
} from '../../src/store/history.js';
import {
  appendAnswer,
  appendEscalation,
  appendIntegration,
  closeAttempt,
  describeWork,
  openAttempt,
} from '../../src/store/history-entries.js';
import { storyOf } from '../../src/store/findings.js';
import { unknownUsage, type Usage } from '../../src/usage.js';
import { ledgerBudget, recordAttempt } from '../mutations/parts.js';
import { FakeClock } from '../rig/clock.js';
import { gate, policyOf } from '../rig/policy.js';

export { gate, policyOf };

/** A made-up object name for a word. */
export function oidOf(word: string): Oid {
  return parseOid(createHash('sha1').update(word).digest('hex'));
}

const baseCode = oidOf('base');
const tip = oidOf('tip');

/** An attempt of an earlier run. */
interface PastAttempt {
  readonly verdict?: 'pass' | 'fail' | 'operation' | 'stopped';
  readonly tree?: string;
  readonly question?: string;
  readonly finding?: string;
  readonly bare?: boolean;
}

/** The record of an Issue in memory, with the real History. */
class FakeRecord implements IssueRecord {
  issue: Issue = issueOf('01-a');
  readonly ref = 'refs/heads/giro-issue/s1/01-a';
  commit: Oid | null = null;
  base: Oid = tip;
  standing: IssueRecord['standing'] = 'fresh';
  history = '';
  code: Oid = baseCode;
  conflicts: readonly string[] = [];
  overruledFiles: readonly string[] = [];
  shown: Oid | null = null;
  lost: string | null = null;
  workFindings: readonly Finding[] = [];
  /** The checkpoint at which the branch turns out to be moved. */
  movedAt: string | null = null;
  readonly #log: string[];
  #late: (() => Promise<void>) | null = null;

  constructor(log: string[]) {
    this.#log = log;
  }

  get entries() {
    return readHistory(this.history);
  }

  get attempt(): number {
    return lastAttempt(this.entries);
  }

  get budgetUsed(): number {
    return budgetUsed(this.entries);
  }

  get blockedInARow(): number {
    return blockedInARow(this.entries);
  }

  get question(): string | undefined {
    return lastQuestion(this.entries);
  }

  get couldNotBeJudged(): boolean {
    return couldNotBeJudged(this.entries);
  }

  get findings(): string {
    return lastFindings(this.history);
  }

  get answered(): boolean {
    return this.entries.at(-1)?.kind === 'answered';
  }

  get story() {
    return storyOf(this.entries);
  }

  overruled(): ReturnType<IssueRecord['overruled']> {
    return Promise.resolve(this.overruledFiles);
  }

  changes(): ReturnType<IssueRecord['changes']> {
    return Promise.resolve(this.code === baseCode ? [] : [{ path: 'a.ts', insertions: 3, deletions: 1 }]);
  }

  get takenBack(): boolean {
    return wasTakenBack(this.entries);
  }

  noProgress(limit: number): string | undefined {
    return noProgress(this.entries, limit);
  }

  trees(): ReturnType<IssueRecord['trees']> {
    return Promise.resolve({ code: this.code, shown: this.shown ?? this.code, baseCode, files: oidOf('files') });
  }

  async bringOnto(onto: Oid): Promise<void> {
    await this.#checkpoint(`onto ${onto === tip ? 'tip' : 'new tip'}`);
    this.base = onto;
  }

  async recordAttempt(driver: string): ReturnType<IssueRecord['recordAttempt']> {
    const attempt = this.attempt + 1;
    await recordAttempt(
      () => this.#checkpoint(`record ${String(attempt)}`),
      (late) => (this.#late = late),
    );
    this.history = openAttempt(this.history, { attempt, at, driver, base: tip });
    this.workFindings = [];
    this.commit = oidOf(`attempt-${String(attempt)}`);
    this.standing = 'interrupted';
    return { attempt, commit: this.commit, files: oidOf('files'), base: tip };
  }

  async adoptWork(work: Parameters<IssueRecord['adoptWork']>[0]): Promise<void> {
    await this.#checkpoint(work.by === 'by hand' ? 'adopt' : 'judge again');
    const opened = openAttempt(this.history, { attempt: this.attempt + 1, at, driver: work.by, base: tip });
    this.history = describeWork(opened, work.line, work.findings);
    this.workFindings = work.findings;
    this.code = work.code ?? this.code;
  }

  async commitWork(work: Parameters<IssueRecord['commitWork']>[0]): Promise<Oid> {
    await this.#checkpoint(work.gated ? 'commit' : 'commit ungated');
    this.history = describeWork(this.history, work.line, work.findings);
    this.workFindings = work.findings;
    this.code = work.code;
    this.shown = null;
    this.commit = oidOf('work');
    return this.commit;
  }

  async recordVerdict(verdict: Parameters<IssueRecord['recordVerdict']>[0]): Promise<void> {
    await this.#checkpoint(`verdict ${verdict.verdict}`);
    const { code, line } = verdict;
    const told = line === undefined ? this.history : describeWork(this.history, line);
    const work = code === undefined ? {} : { work: { commit: oidOf('work'), tree: code } };
    this.history = closeAttempt(told, {
      verdict: verdict.verdict,
      ...work,
      gates: verdict.gates,
      findings: verdict.findings,
      ...(verdict.waived === undefined ? {} : { waived: verdict.waived }),
    });
    this.workFindings = [];
  }

  async recordRejection(entry: Parameters<IssueRecord['recordRejection']>[0]): Promise<void> {
    await this.#checkpoint('rejection');
    this.history = appendIntegration(this.history, {
      at,
      tip: entry.tip,
      verdict: 'fail',
      gates: entry.gates,
      findings: entry.findings,
    });
  }

  escalate(entry: Parameters<IssueRecord['escalate']>[0]): Promise<void> {
    this.#log.push(`escalate ${entry.cause}`);
    this.history = appendEscalation(this.history, { at, ...entry });
    return Promise.resolve();
  }

  /** Puts attempts of an earlier run into History. `bare`: no agent came to work in its folder. */
  past(...attempts: readonly PastAttempt[]): this {
    for (const { verdict, tree, question, finding, bare = false } of attempts) {
      const opened = openAttempt(this.history, { attempt: this.attempt + 1, at, driver: 'old', base: tip });
      const asked = question === undefined ? {} : { question };
      const line = { files: 1, insertions: 1, deletions: 0, duration: '1 s', subjects: [], ...asked };
      const described = bare ? opened : describeWork(opened, line);
      const findings = finding === undefined ? [] : [{ message: finding }];
      const work = tree === undefined ? {} : { work: { commit: oidOf('old'), tree: oidOf(tree) } };
      this.history =
        verdict === undefined ? described : closeAttempt(described, { verdict, ...work, gates: [], findings });
    }
    this.commit = oidOf('old');
    return this;
  }

  answer(more: { readonly text?: string; readonly accepted?: readonly Finding[] } = {}): this {
    this.history = appendAnswer(this.history, { at, how: 'run again', ...more });
    return this;
  }

  /** Lets the record be as an interrupted `judging` one is. */
  judging(...findings: readonly Finding[]): this {
    this.past({});
    this.workFindings = findings.length > 0 ? findings : openFindings(this.entries);
    this.standing = 'judging';
    this.code = oidOf('work-code');
    return this;
  }

  async #checkpoint(what: string): Promise<void> {
    const late = this.#late;
    this.#late = null;
    await late?.();
    if (this.movedAt !== null && what.startsWith(this.movedAt)) {
      this.lost = 'giro-issue/s1/01-a was moved to 1234567 by somebody else while giro worked on it';
      this.#log.push(`moved at ${what}`);
      throw new Error(this.lost);
    }
    this.#log.push(what);
  }
}

const at = '2030-01-01T00:00:00.000Z';

/** What a worker leaves in one attempt. */
export interface Play {
  readonly result?: WorkerResult;
  /** Word of the code tree that it leaves; absent: a new one. `null`: the folder cannot be taken. */
  readonly code?: string | null;
  readonly findings?: readonly Finding[];
}

/** Runs one Issue with everything around it played by the test. */
export class LoopRig {
  readonly log: string[] = [];
  readonly events: EventBody[] = [];
  readonly clock: FakeClock;
  readonly parking: Parking;
  readonly stop = new AbortController();
  readonly record = new FakeRecord(this.log);
  readonly prompts: string[] = [];
  readonly plays: Play[] = [];
  readonly landings: LaneAnswer[] = [];
  /** Code that an earlier run's folder holds now. */
  /** What the engine finds on commits of a person. */
  onBranch: readonly Finding[] = [];
  folder: Taken | null = null;
  budget: Partial<Policy['budget']> = {};
  gates: readonly GateDefinition[] = [gate('test')];
  stray: readonly string[] = [];
  tip = tip;
  verdict: (request: VerifyRequest) => Verdict | Promise<Verdict> = () => verdictOf('pass');
  onDrive: (request: DriverRequest) => void | Promise<void> = () => undefined;
  prepareFails: string | null = null;
  /** Of the Issue, the Spec and the run. */
  get spending(): SpecBudget {
    return (this.#spending ??= budgetOf(this.budget, this.clock));
  }
  #spending: SpecBudget | undefined;
  usage: Usage = unknownUsage;
  #drives = 0;

  /** Beside another one: on the same account, at the same time. */
  constructor(beside?: LoopRig) {
    this.clock = beside?.clock ?? new FakeClock();
    this.parking = beside?.parking ?? new Parking(this.clock);
  }

  run(): Promise<IssueEnd> {
    const agent = async <T>(act: () => Promise<T>): Promise<T> => {
      if (this.stop.signal.aborted) throw this.stop.signal.reason;
      this.log.push('slot');
      return act();
    };
    return runIssue(this.#ports(), this.record, { agent });
  }

  get drives(): number {
    return this.#drives;
  }

  event<T extends EventBody['type']>(type: T): Extract<EventBody, { type: T }>[] {
    return this.events.filter((event): event is Extract<EventBody, { type: T }> => event.type === type);
  }

  #ports(): IssueLoopPorts {
    return {
      spec: { slug: parseSpecSlug('s1') ?? never(), title: 'A Spec', body: 'What is wanted.' },
      policy: policyOf(this.budget, this.gates),
      driver: this.#driver(),
      parking: this.parking,
      budget: this.spending,
      folders: this.#folders(),
      verifier: {
        verify: async (request) => {
          if (request.gates.length === 0) throw new Error('no gate is due');
          this.log.push('gates');
          return this.verdict(request);
        },
      },
      clock: this.clock,
      signal: this.stop.signal,
      noMore: this.stop.signal,
      emit: (event) => {
        this.events.push(event);
      },
      tip: () => this.tip,
      land: () => {
        this.log.push('lane');
        return Promise.resolve(this.landings.shift() ?? { kind: 'landed', commit: oidOf('landed') });
      },
      publishEscalation: () => {
        this.log.push('publish');
        return Promise.resolve();
      },
      environment: () => ({}),
      logFile: (issue, attempt) => `/logs/${issue}.${String(attempt)}`,
      envelopeFile: () => '/envelope',
      shown: (path) => path.replace(/^\//, ''),
      strayFiles: () => Promise.resolve(this.stray),
      jitter: () => 0.5,
    };
  }

  #driver(): DriverFor<WorkerEnvelope> {
    return {
      name: 'claude',
      run: async (request) => {
        this.log.push(`drive ${String(request.attempt)}`);
        this.prompts.push(request.prompt);
        this.#drives += 1;
        await this.onDrive(request);
        const result = this.plays[this.#drives - 1]?.result ?? done();
        return { ...outcomeOf(result), usage: this.usage };
      },
    };
  }

  #folders(): WorkFolders {
    const takeBack = (): Taken => {
      const play = this.plays[this.#drives - 1] ?? {};
      const word = play.code === undefined ? `code-${String(this.#drives)}` : play.code;
      return takenOf(word === null ? null : word === 'base' ? baseCode : oidOf(word), play.findings ?? []);
    };
    return {
      prepare: () => {
        this.log.push('prepare');
        const folder = { folder: '/w', slot: { number: 1, portBase: 1, temporary: '/t' } };
        const { prepareFails } = this;
        if (prepareFails === null) return Promise.resolve({ ok: true, value: folder });
        return Promise.resolve({ ok: false, failure: { kind: 'environment', message: prepareFails } });
      },
      takeBack: () => {
        this.log.push('take back');
        return Promise.resolve(takeBack());
      },
      found: () => Promise.resolve(this.folder),
      inspect: () => Promise.resolve(this.onBranch),
      release: () => {
        this.log.push('release');
      },
      leave: () => {
        this.log.push('leave');
        return '/w';
      },
    };
  }
}

export function done(more: Partial<WorkerEnvelope> = {}): WorkerResult {
  return { kind: 'finished', envelope: { status: 'done', ...more } };
}

export function blocked(question?: string): WorkerResult {
  return { kind: 'finished', envelope: { status: 'blocked', ...(question === undefined ? {} : { question }) } };
}

export function operation(reason = 'network', until?: string): WorkerResult {
  return { kind: 'operation', reason, ...(until === undefined ? {} : { until }) };
}

export function usageLimit(until?: string): WorkerResult {
  return {
    kind: 'usage-limit',
    reason: 'agent is unavailable: usage-limit',
    ...(until === undefined ? {} : { until }),
  };
}

/** A verdict of one gate. */
export function verdictOf(verdict: 'pass' | 'fail', message = 'red', cause: GateCause = 'failed'): Verdict {
  const passed = verdict === 'pass';
  const findings = passed ? [] : [{ message, gate: 'test' }];
  const one: GateVerdict = {
    gate: 'test',
    verdict,
    cause: passed ? null : cause,
    cached: false,
    ended: cause === 'cancelled' ? null : { kind: 'exited', code: passed ? 0 : 1 },
    durationMs: 5,
    findings,
    log: null,
    logHash: null,
    definition: 'definition',
    evidence: null,
    waiver: null,
    judge: null,
    usage: null,
  };
  return { passed, gates: [one], findings, waived: [] };
}

/** What a folder gives back. */
export function takenOf(code: Oid | null, findings: readonly Finding[] = []): Taken {
  return { code, findings, subjects: [], size: { files: 1, insertions: 1, deletions: 0 } };
}

/** The budgets of a Spec alone in its run. */
export function budgetOf(
  budget: Partial<Policy['budget']>,
  clock: FakeClock,
  charged: (charged: Charged) => void = () => undefined,
): SpecBudget {
  const own = ledgerBudget(policyOf(budget).budget);
  return new SpecBudget(own, { run: new RunBudget(own.run), clock, charged });
}

/** An Issue as its file says. */
export function issueOf(name: string, more: Partial<Issue> = {}): Issue {
  const id: IssueId = parseIssueId(name) ?? never();
  return {
    id,
    path: `docs/specs/s1/issues/${name}.md`,
    title: `Issue ${name}`,
    body: `# Issue ${name}\n\nDo it.\n`,
    state: 'ready',
    dependsOn: [],
    touches: [],
    resources: [],
    gates: [],
    tests: [],
    history: '',
    ...more,
  };
}

function outcomeOf(result: WorkerResult): WorkerOutcome {
  return {
    result,
    ended: { kind: 'exited', code: 0 },
    durationMs: 1000,
    tail: 'the last lines',
    usage: unknownUsage,
    model: null,
  };
}

function never(): never {
  throw new Error('not a name');
}
