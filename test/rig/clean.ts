/** What tests of `giro clean` share: runs that leave things behind, and what the program says of them. */
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import type { CleanItem } from '../../src/cli/clean-items.js';
import { makeProject, type Project, type ProjectSetup } from './giro.js';

/** What `giro clean --json` prints. */
export interface CleanJson {
  readonly items: readonly (CleanItem & { readonly removed: boolean })[];
  readonly removed: number;
  readonly notices: readonly string[];
}

/** Loaded into giro, it ends it by SIGKILL before a step that `at` names. */
export function killedAt(at: string): Readonly<Record<string, string>> {
  const interposer = pathToFileURL(resolve(import.meta.dirname, '../crash/interposer.mjs')).href;
  return { NODE_OPTIONS: `--import=${interposer}`, GIRO_KILL_AT: at };
}

/** Runs `giro clean --json` to a good end. */
export async function cleaned(project: Project, ...args: readonly string[]): Promise<CleanJson> {
  const run = await project.giro(['clean', '--json', ...args]);
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  return JSON.parse(run.stdout) as CleanJson;
}

/** What is said of a kind of thing of an Issue: its fate, and why. */
export function saidOf(json: CleanJson, kind: CleanItem['kind'], issue: string | null = null): readonly string[] {
  return json.items
    .filter((item) => item.kind === kind && (issue === null || item.issue === issue))
    .map(({ fate, why }) => `${fate}: ${why}`);
}

/** The folder below the cache that is this repository's. */
export async function roomOf(project: Project): Promise<string> {
  const all = join(project.folder, 'cache', 'giro');
  const [own, ...others] = await readdir(all);
  expect(others).toEqual([]);
  return join(all, own ?? '');
}

/** The worktree that is registered for an Issue. */
export async function worktreeOf(project: Project, issue: string): Promise<string> {
  const list = await project.git('worktree', 'list', '--porcelain');
  const block = list.split('\n\n').find((one) => one.includes(`locked giro ${project.spec} ${issue}`));
  const folder = /^worktree (.*)$/m.exec(block ?? '')?.[1];
  if (folder === undefined) throw new Error(`no worktree of ${issue}:\n${list}`);
  return folder;
}

/** A project whose giro was killed right after it had integrated its one Issue: worktree, branch and checkouts are left. */
export async function killedAfterIntegration(setup: Partial<ProjectSetup> = {}): Promise<Project> {
  const project = await makeProject({
    issues: { '01-a': {} },
    files: { 'README.md': '# Test\n', '.gitignore': 'node_modules\n*.local\n' },
    ...setup,
  });
  const run = await project.start(['implement', 's1', '--json'], { env: killedAt('event issue.integrated#1') }).ended;
  expect(run.signal).toBe('SIGKILL');
  return project;
}

/** A project whose one Issue asks, with its worktree. */
export async function asking(setup: Partial<ProjectSetup> = {}): Promise<Project> {
  const project = await makeProject({
    issues: { '01-a': {} },
    files: { 'README.md': '# Test\n', '.gitignore': 'node_modules\n*.local\n' },
    verify: 'test = "! test -f 01-a.txt"',
    budget: 'attempts = 1\nattempt-timeout = "60s"',
    ...setup,
  });
  expect((await project.implement()).code).toBe(2);
  return project;
}
