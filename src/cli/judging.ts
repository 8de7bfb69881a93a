/** Joins judges with git: what is under judgement, where they read it, and what they are started with. */
import { createHash } from 'node:crypto';
import { withoutRecord } from '../config/splice.js';
import { createDriver } from '../drivers/create.js';
import type { Driver, DriverOutcome, DriverRequest, EnvelopeContract } from '../drivers/driver.js';
import { judgeContract } from '../drivers/judge.js';
import type { Subject, VerifyRequest } from '../gates/gate.js';
import type { Brief, JudgePorts } from '../gates/judging.js';
import type { Oid, SpecSlug } from '../issue.js';
import type { Budgeting } from '../loop/budget.js';
import { pauseMs, type Parking } from '../loop/parking.js';
import type { Clock } from '../platform/clock.js';
import type { Confinement } from '../platform/confinement.js';
import { childEnvironment, type Environment } from '../platform/environment.js';
import type { Policy } from '../policy.js';
import { readingTree } from '../store/reading.js';
import { codeTree } from '../store/tree.js';
import { unknownUsage } from '../usage.js';
import type { Git } from '../worktree/git-types.js';
import type { Readings } from '../worktree/reading.js';

/** More of a diff no judge reads; the files are all in its checkout. */
const largestDiff = 256 * 1024;

/** What the judges of a run are made from. */
export interface JudgingRequest {
  readonly git: Git;
  readonly spec: SpecSlug;
  readonly policy: Policy;
  readonly top: string;
  readonly own: Readonly<Record<string, string | undefined>>;
  /** What everything that the run starts has in its environment. */
  readonly mark: Environment;
  readonly confinement: Confinement;
  readonly clock: Clock;
  readonly readings: Readings;
  readonly budget: Budgeting;
  readonly parking: Parking;
  readonly jitter: () => number;
}

/** Makes what the judges of a run stand on. */
export function judgePorts(request: JudgingRequest): JudgePorts {
  const { git, spec, policy, top, own, mark, confinement, clock, readings, budget, parking, jitter } = request;
  const definition = policy.drivers.byName.get(policy.roles.judge);
  if (definition === undefined) throw new Error(`no such driver: ${policy.roles.judge}`);
  return {
    driver: withinBudget(createDriver(definition, { clock, repository: top, own, confinement }), budget),
    contract: judgeContract,
    driverHash: createHash('sha256').update(JSON.stringify(definition)).digest('hex'),
    spec,
    brief: (asked) => briefOf(git, spec, asked),
    withReading: (tree, use) => readings.withReading(tree, use),
    failures: policy.budget.failures,
    pauseMs: (failures, until) => pauseMs({ clock, jitter }, { failures, until }),
    parking,
    environment: (gate) => ({ ...childEnvironment(own, [...definition.env, ...gate.env]), ...mark, GIRO_SPEC: spec }),
  };
}

/** A judge whom no budget has room for is not called: its gate is not decided, and the loop asks the budget why. */
function withinBudget(driver: Driver, budget: Budgeting): Driver {
  return {
    name: driver.name,
    async run<T>(request: DriverRequest, contract: EnvelopeContract<T>): Promise<DriverOutcome<T>> {
      const { role, issue, signal } = request;
      const asked = await budget.ask({ role, driver: driver.name, issue }, signal);
      if (asked.kind !== 'open') return notCalled(asked.kind === 'refused' ? asked.refusal.why : 'the run is stopped');
      const { ticket } = asked;
      try {
        const timeoutMs = Math.min(request.timeoutMs, ticket.timeLeftMs ?? Infinity);
        const outcome = await driver.run({ ...request, timeoutMs }, contract);
        ticket.close(outcome.ended.kind === 'could-not-start' ? null : outcome);
        return outcome;
      } finally {
        ticket.close(null);
      }
    },
  };
}

function notCalled<T>(reason: string): DriverOutcome<T> {
  const nobody = { durationMs: 0, tail: '', usage: unknownUsage, model: null };
  return { result: { kind: 'stopped' }, ended: { kind: 'cancelled', reason }, ...nobody };
}

async function briefOf(git: Git, spec: SpecSlug, { issue, codeTree: code, subject }: VerifyRequest): Promise<Brief> {
  const { commit, base } = required(subject);
  const reading = await readingTree(git, { spec, commit, code, withoutRecord });
  const baseCode = await codeTree(git, (await git.readCommit(base)).tree);
  return {
    spec: { title: spec, body: reading.spec },
    issue: issue === null ? null : { title: issue, body: reading.bodyOf(issue) },
    diff: code === baseCode ? '' : await git.patch(baseCode, code, largestDiff),
    tree: reading.tree,
    baseCode,
    linesOf: (file) => linesOf(git, reading.tree, file),
  };
}

/** Whoever asks for judges knows what they are to judge. */
function required(subject: Subject | null): Subject {
  if (subject === null) throw new Error('a judge cannot judge a tree of which no commit is known');
  return subject;
}

async function linesOf(git: Git, tree: Oid, file: string): Promise<number | null> {
  // The path is a judge's word: only a plain one can name a file.
  if (file.split('/').some((part) => part === '' || part === '.' || part === '..')) return null;
  const entry = await git.readPath(tree, file);
  if (entry === null || !entry.mode.startsWith('100')) return null;
  const bytes = await git.readBlob(entry.oid);
  const ends = bytes.reduce((count, byte) => (byte === 10 ? count + 1 : count), 0);
  return bytes.length === 0 || bytes.at(-1) === 10 ? ends : ends + 1;
}
