/** `giro init`: proposes a policy and an example Spec that fit the project. Writes nothing that exists. */
import path from 'node:path';
import { failed, ok, type Result } from '../failure.js';
import { kindOf, linkExclusive } from '../platform/files.js';
import { makeFolder } from '../platform/folders.js';
import { printable } from '../platform/text.js';
import { specsFolder } from '../spec.js';
import { describeRepository } from '../worktree/git.js';
import { detectSetup, detectTests, type Project } from './detect.js';
import { detectHooks } from './detect-hooks.js';
import { exampleFiles, policyText } from './init-text.js';
import { readProject, type EnvironmentFailure } from './read-project.js';

/** Everything init will do, before it does it. */
export interface InitPlan {
  /** What is there and stays as it is, besides the files below that exist. */
  readonly kept: readonly string[];
  /** In the order of writing. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
  /** What the new policy takes over and from where, one line each. */
  readonly found: readonly string[];
  /** What a person has to do before the first run. */
  readonly missing: readonly string[];
  /** The command to type then. */
  readonly next: string;
}

/** What init needs. */
export interface InitOptions {
  /** Any folder inside the repository, or the one that is to become it. */
  readonly folder: string;
  /** giro's own environment. */
  readonly own: Readonly<Record<string, string | undefined>>;
  readonly print: (line: string) => void;
  /** For what went wrong. */
  readonly complain: (line: string) => void;
}

const policyFile = 'giro.toml';

/** Decides what fits the project. Files that exist are left alone later, so the plan may name them. */
export function planInit(project: Project): InitPlan {
  const tests = detectTests(project);
  const setup = detectSetup(project);
  const hooks = detectHooks(project);
  const { hasClaude, names, specs } = project;
  const isNew = !names.has(policyFile);
  const [test] = tests;
  return {
    kept: specs.map((slug) => `${specsFolder}/${slug}`),
    files: [
      { path: policyFile, text: policyText({ tests, setup, hooks, hasClaude, isNode: names.has('package.json') }) },
      ...(specs.length === 0 ? exampleFiles(project) : []),
    ],
    found: isNew
      ? [
          test === undefined ? 'no test command' : `test command: ${test.command} (${test.from})`,
          ...(setup === undefined ? [] : [`setup: ${setup.command} (${setup.from})`]),
          ...hooks.map(({ from, command }) => `git hook ${from}: giro runs no hook; proposed as the gate ${command}`),
        ]
      : [],
    missing: [
      ...(isNew && test === undefined ? [`name at least one gate under [verify] in ${policyFile}`] : []),
      ...(isNew && !hasClaude ? [`name your agent's program in [driver.command] of ${policyFile}`] : []),
      ...(isNew && hooks.length > 0 ? [`uncomment the hooks that must hold as gates in ${policyFile}`] : []),
      ...firstCommit(project),
    ],
    next: `giro implement ${specs[0] ?? 'example'}`,
  };
}

function firstCommit({ isRepository, hasCommit, names }: Project): readonly string[] {
  if (hasCommit) return [];
  if (isRepository)
    return ['make a first commit: agents start from a commit, and there is none yet (git add, git commit)'];
  const ignore = names.has('node_modules') && !names.has('.gitignore') ? 'echo node_modules > .gitignore && ' : '';
  const commands = `${ignore}git init && git add -A && git commit -m Start`;
  return [`make this folder a repository, since agents start from a commit: ${commands}`];
}

/** Runs `giro init`; returns the exit code. */
export async function runInit(options: InitOptions): Promise<number> {
  const repository = await describeRepository(options);
  if (!repository.ok) return refuse(options, repository.failure);
  const { root } = repository.value;
  const plan = planInit(await readProject(repository.value, options.own));
  for (const line of plan.kept) options.print(`kept   ${printable(line)}`);
  const written = await writePlan(root, plan, options.print);
  if (!written.ok) return refuse(options, written.failure);
  for (const line of plan.found) options.print(`found  ${printable(line)}`);
  for (const line of plan.missing) options.print(`next   ${printable(line)}`);
  options.print(`next   ${printable(plan.next)}`);
  return 0;
}

function refuse({ complain }: InitOptions, failure: EnvironmentFailure): number {
  complain(`giro init: ${printable(failure.message)}`);
  if (failure.hint !== undefined) complain(`  fix: ${failure.hint}`);
  return 1;
}

/** Writes what is not there yet; each file appears whole or not at all. */
async function writePlan(
  root: string,
  plan: InitPlan,
  print: InitOptions['print'],
): Promise<Result<void, EnvironmentFailure>> {
  for (const { path: file, text } of plan.files) {
    const blocked = await obstacle(root, file);
    if (blocked !== undefined) {
      return cannotWrite(file, `${blocked} is not a folder`, `move ${blocked} out of the way`);
    }
    try {
      print(`${(await writeNew(path.join(root, file), text)) ? 'wrote ' : 'kept  '} ${file}`);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error;
      return cannotWrite(file, error.message, 'make room or give yourself the right to write there, and run it again');
    }
  }
  return ok(undefined);
}

/** False when something is there already, whatever it is. */
async function writeNew(file: string, text: string): Promise<boolean> {
  if ((await kindOf(file)) !== null) return false;
  await makeFolder(path.dirname(file));
  return linkExclusive(file, text);
}

function cannotWrite(file: string, reason: string, hint: string): Result<never, EnvironmentFailure> {
  return failed({ kind: 'environment', message: `${file} cannot be written: ${reason}`, hint });
}

/** The first part above a file that is there and no folder; through a link init would write outside the repository. */
async function obstacle(root: string, file: string): Promise<string | undefined> {
  const parts = file.split('/').slice(0, -1);
  for (const count of parts.keys()) {
    const above = parts.slice(0, count + 1).join('/');
    const kind = await kindOf(path.join(root, above));
    if (kind !== null && kind !== 'folder') return above;
  }
  return undefined;
}
