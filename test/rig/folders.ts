import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openLeftovers } from '../../src/cli/leftovers.js';
import { parseIssueId, parseSpecSlug, type IssueId, type SpecSlug } from '../../src/issue.js';
import { systemClock } from '../../src/platform/clock.js';
import type { WorktreePolicy } from '../../src/policy.js';
import { createCheckouts, type Checkouts } from '../../src/worktree/checkout.js';
import { openGit } from '../../src/worktree/git.js';
import type { OpenedGit } from '../../src/worktree/git-types.js';
import { createSetup, type Setup, type SetupPorts, type Vacate } from '../../src/worktree/setup.js';
import { createSlots, type Slots } from '../../src/worktree/slots.js';
import { createWorktrees, type Worktrees } from '../../src/worktree/worktrees.js';
import { onTestFinished } from 'vitest';
import { checkoutGit, lookForMarks } from '../mutations/parts.js';
import { processLimits } from './policy.js';
import type { TestRepository } from './repository.js';

const exec = promisify(execFile);

/** Everything that makes folders in one test, on a real repository. */
export interface FolderRig {
  readonly git: OpenedGit;
  readonly root: string;
  readonly slots: Slots;
  readonly setup: Setup;
  readonly vacate: Vacate;
  readonly worktrees: Worktrees;
  readonly checkouts: Checkouts;
  readonly notices: string[];
}

/** The policy of a repository without `[worktree]`. */
export const plainPolicy: WorktreePolicy = {
  git: 'linked',
  setupTimeoutMs: 20_000,
  inputs: [],
  keep: ['node_modules'],
  copy: [],
  link: [],
};

let runs = 0;

/** Starts what one run has; call it again for the next run on the same repository. */
export async function startRun(
  repository: TestRepository,
  change: {
    readonly policy?: Partial<WorktreePolicy>;
    readonly root?: string;
    readonly folder?: string;
    readonly limit?: number;
    readonly setup?: Partial<SetupPorts>;
    readonly spec?: SpecSlug;
  } = {},
): Promise<FolderRig> {
  const run = join(repository.folder, `run-${String(++runs)}`);
  const opened = await openGit({ folder: change.folder ?? repository.path, own: repository.own, runFolder: run });
  if (!opened.ok) throw new Error(JSON.stringify(opened.failure));
  const git = opened.value;
  const root = change.root ?? join(repository.folder, 'cache', 'auth');
  const policy = { ...plainPolicy, ...change.policy };
  const notices: string[] = [];
  const notice = (message: string): void => void notices.push(message);
  const slots = createSlots({ temporary: join(run, 't'), offset: 0 });
  const setup = createSetup({
    git,
    policy,
    userTop: git.user.topLevel,
    shell: ['bash', '--noprofile', '--norc', '-o', 'pipefail', '-c'],
    environment: () => ({ PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: repository.home }),
    logFolder: join(run, 'logs'),
    graceMs: 500,
    signal: new AbortController().signal,
    clock: systemClock,
    notice,
    ...change.setup,
  });
  const leftovers = openLeftovers({
    ...{
      commonDir: git.commonDir,
      spec: change.spec ?? specSlug('auth'),
      run: 'r',
      root,
      graceMs: 500,
      limits: processLimits,
    },
    ...{
      look: lookForMarks,
      clock: systemClock,
      emit: (event) => notices.push('message' in event ? event.message : event.type),
    },
  });
  const shared = { git, policy, root, slots, setup, vacate: leftovers.vacate, notice };
  const worktrees = createWorktrees({
    ...shared,
    spec: change.spec ?? specSlug('auth'),
    clock: systemClock,
    makers: 2,
  });
  const limit = change.limit ?? 2;
  const checkouts = createCheckouts({ ...shared, git: checkoutGit(git), baseSpecs: null, limit });
  onTestFinished(() => git.close());
  return { git, root, slots, setup, vacate: leftovers.vacate, worktrees, checkouts, notices };
}

/** A Spec's name in a test. */
function specSlug(text: string): SpecSlug {
  const slug = parseSpecSlug(text);
  if (slug === undefined) throw new Error(text);
  return slug;
}

/** An Issue's name in a test. */
export function issueId(text: string): IssueId {
  const id = parseIssueId(text);
  if (id === undefined) throw new Error(text);
  return id;
}

/** Runs plain git as an agent or a gate would, in its folder. */
export async function agentGit(folder: string, ...args: readonly string[]): Promise<string> {
  const names = ['AUTHOR', 'COMMITTER'].flatMap((role) => [
    [`GIT_${role}_NAME`, 'Agent'],
    [`GIT_${role}_EMAIL`, 'agent@localhost'],
  ]);
  const env = { PATH: '/usr/bin:/bin', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', ...Object.fromEntries(names) };
  const { stdout } = await exec('git', [...args], { cwd: folder, env, timeout: 20_000 });
  return stdout.trimEnd();
}
