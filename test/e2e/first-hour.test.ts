import { rm, writeFile, mkdir, chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventsOf, makeProject } from '../rig/giro.js';

/** Each is exit 1 with what is wrong and the fix, and nothing is written or started. */
describe('the mistakes of the first hour are refused with their fix', () => {
  test('no giro.toml', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    await rm(join(project.path, 'giro.toml'));
    const run = await project.implement();
    expect([run.code, run.stdout]).toEqual([1, '']);
    expect(run.stderr).toMatch(/there is no giro\.toml[\s\S]*giro init/);
  });

  test('no repository', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    const outside = join(project.folder, 'outside');
    await mkdir(outside);
    for (const args of [['implement', 's1'], ['status']]) {
      const run = await project.giro(args, { cwd: outside });
      expect([args[0], run.code, run.stdout]).toEqual([args[0], 1, '']);
      expect(run.stderr).toContain('git init');
    }
    // Whoever begins with an empty folder gets the files, and the way from there.
    const init = await project.giro(['init'], { cwd: outside });
    expect([init.code, init.stderr]).toEqual([0, '']);
    expect(init.stdout).toMatch(/wrote +giro\.toml[\s\S]*make this folder a repository.*git init/);
  });

  test('no commit', async () => {
    const project = await makeProject({ files: null, issues: { '01-a': {} } });
    const run = await project.implement();
    expect([run.code, run.stdout]).toEqual([1, '']);
    expect(run.stderr).toMatch(/no commit yet[\s\S]*git commit/);
  });

  test('no gate', async () => {
    const project = await makeProject({ issues: { '01-a': {} }, verify: '' });
    const run = await project.implement();
    expect([run.code, run.stdout]).toEqual([1, '']);
    expect(run.stderr).toMatch(/giro\.toml[\s\S]*\[verify\]/);
  });

  test('an agent that is not there, not on PATH, or not executable', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    const policy = (program: string): Promise<void> =>
      project.write(
        'giro.toml',
        `[driver]\ndefault = "command"\n[driver.command]\nrun = ["${program}"]\n[verify]\ntest = "true"\n`,
      );
    await policy('./nowhere.sh');
    expect((await project.implement()).stderr).toMatch(/names \.\/nowhere\.sh, but there is no/);
    await policy('no-such-agent');
    expect((await project.implement()).stderr).toMatch(/no-such-agent, which is not on PATH/);
    await chmod(join(project.path, 'agent.sh'), 0o644);
    await policy('./agent.sh');
    const run = await project.implement();
    expect([run.code, run.stdout]).toEqual([1, '']);
    expect(run.stderr).toContain('chmod +x');
    expect(await project.git('for-each-ref', 'refs/heads/giro/')).toBe('');
  });

  test('all mistakes of giro.toml at once, with line, column, underline and the nearest key', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    await project.write(
      'giro.toml',
      '[driver]\ndefault = "comand"\n[driver.command]\nrun = "x"\n[budget]\natempts = 3\nattempt-timeout = "30 minutes"\n[verify]\ntest = "true"\n',
    );
    const run = await project.implement();
    expect([run.code, run.stdout]).toEqual([1, '']);
    for (const part of ['giro.toml:2:', 'giro.toml:4:', 'giro.toml:6:1', 'giro.toml:7:', 'attempts', '^'])
      expect(run.stderr).toContain(part);
  });

  test('an unknown Spec, with the nearest one', async () => {
    const project = await makeProject({ spec: 'login', issues: { '01-a': {} } });
    const run = await project.giro(['implement', 'logn']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('did you mean login?');
  });

  test('the branch is checked out somewhere', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    expect((await project.implement()).code).toBe(0);
    await project.write('docs/specs/s1/issues/02-b.md', '---\nstate: ready\n---\n# B\n\nDo it.\n');
    await project.git('worktree', 'add', '-q', join(project.folder, 'elsewhere'), 'giro/s1');
    const run = await project.implement();
    expect([run.code, run.stdout]).toEqual([1, '']);
    expect(run.stderr).toMatch(/giro\/s1 is checked out in [\s\S]*switch --detach/);
  });
});

test('a gate that cannot run in a clean checkout says what the checkout lacks, and is not charged to the agent', async () => {
  const project = await makeProject({
    files: { 'README.md': '# T\n', '.gitignore': 'node_modules\n' },
    issues: { '01-a': {} },
    verify: 'test = "PATH=node_modules/.bin:$PATH runner"',
  });
  await mkdir(join(project.path, 'node_modules/.bin'), { recursive: true });
  await writeFile(join(project.path, 'node_modules/.bin/runner'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'issue.escalated')[0]).toMatchObject({ cause: 'cannot-run-here', attempts: 1 });
  expect(await project.issueFile('01-a')).toMatch(
    /clean checkout has no node_modules[\s\S]*\[worktree\] setup = "npm install"[\s\S]*verdict: operation/,
  );
  // The fix that it names works.
  await project.write(
    'giro.toml',
    '[driver]\ndefault = "command"\n[driver.command]\nrun = ["./agent.sh"]\n[verify]\ntest = "PATH=node_modules/.bin:$PATH runner"\n[worktree]\ncopy = ["node_modules/**"]\n',
  );
  expect((await project.implement()).code).toBe(0);
});

test('a done Spec is proved again without running anything; an agent is not started, the branch not moved', async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  expect((await project.implement()).code).toBe(0);
  const tip = await project.git('rev-parse', 'giro/s1');
  const again = await project.implement();
  expect(again.code).toBe(0);
  expect(eventsOf(again, 'attempt.started')).toEqual([]);
  expect(eventsOf(again, 'run.finished')[0]).toMatchObject({ exit: 0, reason: 'proof' });
  expect(await project.git('rev-parse', 'giro/s1')).toBe(tip);
});

test('a dry run shows waves, gates and budget, and writes nothing', async () => {
  const project = await makeProject({ issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } } });
  const before = await project.git('for-each-ref');
  const run = await project.giro(['implement', 's1', '--dry-run']);
  expect(run.code).toBe(0);
  expect(run.stdout).toMatch(/wave 1 +01-a\nwave 2 +02-b\n[\s\S]*gate +test: true[\s\S]*budget +2 attempts/);
  expect(await project.git('for-each-ref')).toBe(before);
});
