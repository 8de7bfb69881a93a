import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { planInit, runInit } from '../../src/cli/init.js';
import { parseSpecFolder } from '../../src/config/issue-file.js';
import { describeGate } from '../../src/gates/definition.js';
import { loadPolicy } from '../../src/config/load.js';
import { parseSpecSlug } from '../../src/issue.js';
import type { Policy } from '../../src/policy.js';
import { temporaryFolder } from '../rig/temp.js';

type Files = Readonly<Record<string, string>>;

const npmProject: Files = {
  'package.json': JSON.stringify({ name: 'app', scripts: { test: 'node --test', lint: 'eslint .' } }),
  'package-lock.json': '{}',
  'readme.md': '# app\n',
  '.husky/pre-commit': 'npm run lint\n',
};

describe('giro init', () => {
  test('writes a policy and an example Spec that fit the project, and says so', async () => {
    const folder = await repository(npmProject);
    const { code, lines } = await init(folder);
    expect(code).toBe(0);
    expect(lines).toEqual([
      'wrote  giro.toml',
      'wrote  docs/specs/example/issues/01-how-to-test.md',
      'wrote  docs/specs/example/issues/02-link-from-readme.md',
      'wrote  docs/specs/example/SPEC.md',
      'found  test command: npm test (package.json)',
      'found  setup: npm ci (package-lock.json)',
      'found  git hook .husky/pre-commit: giro runs no hook; proposed as the gate npm run lint',
      "next   name your agent's program in [driver.command] of giro.toml",
      'next   uncomment the hooks that must hold as gates in giro.toml',
      'next   giro implement example',
    ]);
    const issue = await text(folder, 'docs/specs/example/issues/02-link-from-readme.md');
    expect(issue).toContain('depends-on: [01]');
    expect(issue).toContain('`readme.md`');
    expect(await text(folder, 'docs/specs/example/issues/01-how-to-test.md')).toContain('`npm test`');
  });

  test('writes a policy that holds what was found, and every proposal in its comments is valid too', async () => {
    const folder = await repository(npmProject);
    await init(folder);
    const toml = await text(folder, 'giro.toml');
    expect(policyOf(folder, toml)).toMatchObject({
      drivers: { default: 'command', byName: new Map([['command', expect.objectContaining({ run: ['./agent.sh'] })]]) },
      gates: [{ name: 'test', run: 'npm test' }],
      worktree: { setup: 'npm ci' },
    });
    expect(policyOf(folder, uncommented(toml)).gates.map((gate) => [gate.name, describeGate(gate)])).toEqual([
      ['test', 'npm test'],
      ['lint', 'npm run lint'],
      ['review', 'a judge, by a rubric in giro.toml'],
    ]);
  });

  test('writes a Spec that the engine reads without a complaint', async () => {
    const folder = await repository(npmProject);
    await init(folder);
    const spec = 'docs/specs/example';
    const names = ['SPEC.md', 'issues/01-how-to-test.md', 'issues/02-link-from-readme.md'].map(
      (name) => `${spec}/${name}`,
    );
    const files = await Promise.all(
      names.map(async (name) => ({ path: name, bytes: await readFile(path.join(folder, name)) })),
    );
    const slug = parseSpecSlug('example');
    const parsed = slug === undefined ? undefined : parseSpecFolder({ slug, files });
    expect(parsed?.ok === true ? parsed.value.spec : parsed).toMatchObject({
      state: 'draft',
      ignored: [],
      issues: [
        { id: '01-how-to-test', state: 'ready', dependsOn: [], touches: ['docs/development.md'] },
        { id: '02-link-from-readme', state: 'ready', dependsOn: ['01-how-to-test'], touches: ['readme.md'] },
      ],
    });
  });

  test('decides from what was read alone: a project that says nothing gets a policy with a hole, and is told', () => {
    const nothing = { names: new Set(['x']), files: new Map(), testNames: [], hooks: [], specs: [] };
    const plan = planInit({ ...nothing, name: 'x', isRepository: true, hasCommit: true, hasClaude: true });
    expect(plan.found).toEqual(['no test command']);
    expect(plan.missing).toEqual(['name at least one gate under [verify] in giro.toml']);
    expect(plan.files.map((file) => file.path).at(0)).toBe('giro.toml');
    expect(plan.files[0]?.text).toContain('# No test command was found.');
    expect(plan.files[0]?.text).toContain('# setup = "make deps"');
    const npm = planInit({
      ...nothing,
      names: new Set(['package.json']),
      name: 'x',
      isRepository: true,
      hasCommit: true,
      hasClaude: true,
    });
    expect(npm.files[0]?.text).toContain('# setup = "npm ci" # needs a lock file');
  });

  test('names claude where it is on the PATH', async () => {
    const folder = await repository({ ...npmProject, 'bin/claude': '#!/bin/sh\n' });
    execFileSync('chmod', ['+x', path.join(folder, 'bin/claude')]);
    const { lines } = await init(folder, { PATH: `${path.join(folder, 'bin')}:${process.env['PATH'] ?? ''}` });
    const { drivers } = policyOf(folder, await text(folder, 'giro.toml'));
    expect(drivers.byName.get('command')).toMatchObject({ run: expect.arrayContaining(['claude', '-p']) as unknown });
    expect(lines.join('\n')).not.toContain('name your agent');
  });

  test('touches nothing that exists, and a second run changes nothing', async () => {
    const folder = await repository({ ...npmProject, 'giro.toml': 'mine\n' });
    await init(folder);
    const before = await snapshot(folder);
    const { code, lines } = await init(folder);
    expect(code).toBe(0);
    expect(lines).toEqual(['kept   docs/specs/example', 'kept   giro.toml', 'next   giro implement example']);
    expect(await snapshot(folder)).toEqual(before);
    expect(await text(folder, 'giro.toml')).toBe('mine\n');
  });

  test('adds no example where there are Specs', async () => {
    const folder = await repository({
      ...npmProject,
      'docs/specs/a/SPEC.md': '# A\n',
      'docs/specs/b/SPEC.md': '# B\n',
    });
    const { lines } = await init(folder);
    expect(lines.filter((line) => /^(?:kept|wrote)/.test(line))).toEqual([
      'kept   docs/specs/a',
      'kept   docs/specs/b',
      'wrote  giro.toml',
    ]);
    expect(lines.at(-1)).toBe('next   giro implement a');
  });

  test('completes an example that was cut off, keeping what is there', async () => {
    const folder = await repository({ ...npmProject, 'docs/specs/example/issues/01-how-to-test.md': 'mine\n' });
    await init(folder);
    expect(await text(folder, 'docs/specs/example/issues/01-how-to-test.md')).toBe('mine\n');
    expect(await text(folder, 'docs/specs/example/SPEC.md')).toContain('state: draft');
  });

  test('works from a subfolder and without commits, and says what is missing then', async () => {
    const folder = await repository({ 'src/a.txt': '' }, { commit: false });
    const { code, lines } = await init(path.join(folder, 'src'));
    expect(code).toBe(0);
    expect(lines).toContain('wrote  giro.toml');
    expect(lines).toContain('found  no test command');
    expect(lines).toContain('next   name at least one gate under [verify] in giro.toml');
    expect(lines.some((line) => line.startsWith('next   make a first commit'))).toBe(true);
    expect(await readdir(path.join(folder, 'src'))).toEqual(['a.txt']);
    const loaded = load(folder, await text(folder, 'giro.toml'));
    expect(loaded.ok ? [] : loaded.failure.diagnostics.map(({ message }) => message)).toEqual([
      expect.stringContaining('gate'),
    ]);
  });

  test('reads the hooks that git would run, wherever core.hooksPath says, and no samples', async () => {
    const plain = await repository({
      '.git/hooks/pre-push': 'make check\n',
      '.git/hooks/pre-commit.sample': 'make bad\n',
    });
    const toml = await policyAfterInit(plain);
    expect(toml).toContain('# check = "make check"');
    expect(toml).not.toContain('make bad');
    const moved = await repository({ '.githooks/pre-commit': 'make check\n', '.git/hooks/pre-push': 'make dead\n' });
    execFileSync('git', ['config', 'core.hooksPath', '.githooks'], { cwd: moved, env: gitEnvironment });
    expect(await policyAfterInit(moved)).toContain('# .githooks/pre-commit is a git hook');
    expect(await policyAfterInit(moved)).not.toContain('make dead');
  });

  test('does not take the stubs of husky for hooks', async () => {
    const folder = await repository({ ...npmProject, '.husky/_/pre-commit': '. "$(dirname "$0")/h"\n' });
    execFileSync('git', ['config', 'core.hooksPath', '.husky/_'], { cwd: folder, env: gitEnvironment });
    const toml = await policyAfterInit(folder);
    expect(toml).toContain('# lint = "npm run lint"');
    expect(toml).not.toContain('husky/_');
  });

  test('in a folder that is no repository yet writes the same, and says how to make it one', async () => {
    const { path: folder } = await temporaryFolder();
    await mkdir(path.join(folder, 'node_modules'));
    const { code, lines } = await init(folder);
    expect(code).toBe(0);
    expect((await readdir(folder)).sort()).toEqual(['docs', 'giro.toml', 'node_modules']);
    expect(lines.join('\n')).toMatch(
      /next +make this folder a repository.*: echo node_modules > \.gitignore && git init && git add -A && git commit/,
    );
  });

  test('ends with 1 where git refuses a repository, writing nothing', async () => {
    const { path: folder } = await temporaryFolder();
    await writeFile(path.join(folder, '.git'), 'gitdir: /nowhere\n');
    const { code, lines } = await init(folder);
    expect(code).toBe(1);
    expect(lines.join('\n')).toContain('git says what it needs');
    expect(await readdir(folder)).toEqual(['.git']);
  });

  test('ends with 1 in a bare repository', async () => {
    const { path: folder } = await temporaryFolder();
    execFileSync('git', ['init', '-q', '--bare', folder], { env: gitEnvironment });
    const { code } = await init(folder);
    expect(code).toBe(1);
    expect(await readdir(folder)).not.toContain('giro.toml');
  });

  test('uses the git that runs use, whatever comes first on the PATH', async () => {
    const folder = await repository({ ...npmProject, 'bin/git': '#!/bin/sh\ntouch "$HOME/ran"\n' });
    execFileSync('chmod', ['+x', path.join(folder, 'bin/git')]);
    const { path: home } = await temporaryFolder();
    const bin = path.join(folder, 'bin');
    const { code } = await init(folder, { HOME: home, PATH: `${bin}:${path.dirname(gitProgram)}` });
    expect(code).toBe(0);
    expect(await readdir(home)).toEqual([]);
  });

  test('never writes through a link that leads out of the repository', async () => {
    const folder = await repository(npmProject);
    const { path: outside } = await temporaryFolder();
    await symlink(outside, path.join(folder, 'docs'));
    const { code, lines } = await init(folder);
    expect(code).toBe(1);
    expect(lines.join('\n')).toContain('docs is not a folder');
    expect(await readdir(outside)).toEqual([]);
    expect(await readlink(path.join(folder, 'docs'))).toBe(outside);
  });

  test('keeps a giro.toml that is a link to nowhere', async () => {
    const folder = await repository(npmProject);
    await symlink('elsewhere.toml', path.join(folder, 'giro.toml'));
    const { lines } = await init(folder);
    expect(lines).toContain('kept   giro.toml');
    expect(await readdir(folder)).not.toContain('elsewhere.toml');
  });

  test('prints nothing that steers the terminal', async () => {
    const folder = await repository({
      '.husky/pre-commit': 'echo \u001b[31m; if true\n',
      'docs/specs/a\u001b[2J/SPEC.md': '',
    });
    const { lines } = await init(folder);
    expect(lines.join('\n')).not.toContain('\u001b');
    expect(await text(folder, 'giro.toml')).not.toContain('\u001b');
  });
});

const gitEnvironment = {
  PATH: process.env['PATH'] ?? '',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.org',
};

async function repository(files: Files, { commit = true } = {}): Promise<string> {
  const { path: folder } = await temporaryFolder();
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: folder, env: gitEnvironment });
  git('init', '-q', '-b', 'main');
  if (commit) git('commit', '-q', '--allow-empty', '-m', 'start');
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
    await writeFile(path.join(folder, name), content);
  }
  return folder;
}

/** Runs init with a home of its own and a PATH that has git and no agent. */
async function init(
  folder: string,
  own: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number; readonly lines: readonly string[] }> {
  const lines: string[] = [];
  const { path: home } = await temporaryFolder();
  const code = await runInit({
    folder,
    own: { PATH: path.dirname(gitProgram), HOME: home, XDG_CONFIG_HOME: home, ...own },
    print: (line) => lines.push(line),
    complain: (line) => lines.push(line),
  });
  return { code, lines };
}

const gitProgram = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();

async function policyAfterInit(folder: string): Promise<string> {
  await rm(path.join(folder, 'giro.toml'), { force: true });
  await init(folder);
  return text(folder, 'giro.toml');
}

function load(folder: string, toml: string): ReturnType<typeof loadPolicy> {
  return loadPolicy({ text: toml, file: 'giro.toml', repository: folder, processors: 2, own: {} });
}

function policyOf(folder: string, toml: string): Policy {
  const loaded = load(folder, toml);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.failure.diagnostics, null, 2));
  return loaded.value;
}

function text(folder: string, name: string): Promise<string> {
  return readFile(path.join(folder, name), 'utf8');
}

/** Every file with its content, git's own left out. */
async function snapshot(folder: string): Promise<Files> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .filter((name) => !name.startsWith('.git/'))
    .sort();
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await text(folder, name)] as const)));
}

/** The policy with every proposal switched on: comment lines that hold a setting. */
function uncommented(toml: string): string {
  return toml.replace(/^# ([\w-]+ = )/gm, '$1');
}
