/** Joins judges with git: what is under judgement, where they read it, and what they are started with. */
import { createHash } from 'node:crypto';
import { createDriver } from '../drivers/create.js';
import type { Subject, VerifyRequest } from '../gates/gate.js';
import type { Brief, JudgePorts } from '../gates/judging.js';
import type { Oid, SpecSlug } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { childEnvironment } from '../platform/environment.js';
import type { Policy } from '../policy.js';
import { readingTree } from '../store/reading.js';
import { codeTree } from '../store/tree.js';
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
  readonly clock: Clock;
  readonly readings: Readings;
}

/** Makes what the judges of a run stand on. */
export function judgePorts(request: JudgingRequest): JudgePorts {
  const { git, spec, policy, top, own, clock, readings } = request;
  const definition = policy.drivers.byName.get(policy.roles.judge);
  if (definition === undefined) throw new Error(`no such driver: ${policy.roles.judge}`);
  return {
    driver: createDriver(definition, { clock, repository: top, own }),
    driverHash: createHash('sha256').update(JSON.stringify(definition)).digest('hex'),
    spec,
    brief: (asked) => briefOf(git, spec, asked),
    withReading: (tree, use) => readings.withReading(tree, use),
    environment: (gate) => ({ ...childEnvironment(own, [...definition.env, ...gate.env]), GIRO_SPEC: spec }),
  };
}

async function briefOf(git: Git, spec: SpecSlug, { issue, codeTree: code, subject }: VerifyRequest): Promise<Brief> {
  const { commit, base } = required(subject);
  const reading = await readingTree(git, { spec, commit, code });
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
