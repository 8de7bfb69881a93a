import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { killedAt } from '../rig/clean.js';
import { eventsOf, makeProject, unchangedBy, type GiroRun, type Project } from '../rig/giro.js';
import { scaled } from '../rig/scale.js';

const noticesOf = (run: GiroRun): string =>
  eventsOf(run, 'run.notice')
    .map(({ message }) => message)
    .join('\n');

test("C019 giro's own branches do not block each other", async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  expect((await project.implement()).code).toBe(0);
  const refs = await project.git('for-each-ref', '--format=%(refname)', 'refs/heads/');
  expect(refs.split('\n')).toEqual(['refs/heads/giro-issue/s1/01-a', 'refs/heads/giro/s1', 'refs/heads/main']);
});

test.each(['giro', 'giro/s1/old', 'giro-issue'])(
  'C019 a branch %s of the person is named with the fix, and nothing is half-made',
  async (branch) => {
    const project = await makeProject({ issues: { '01-a': {} } });
    await project.git('branch', branch);
    const refs = await project.git('for-each-ref');
    const run = await project.implement();
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(`the branch ${branch} is in the way`);
    expect(run.stderr).toContain(`git branch -m ${branch}`);
    expect(await project.git('for-each-ref')).toBe(refs);
  },
);

test.each([true, false])(
  'C020 twelve worktrees at once, base with an upstream: %s',
  async (upstream) => {
    const issues = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`${String(index + 1)}-work`, {}]));
    for (let round = 0; round < scaled(1, 5); round += 1) {
      const project = await makeProject({ issues });
      if (upstream) {
        await project.git('update-ref', 'refs/remotes/origin/main', 'HEAD');
        await project.git('config', 'remote.origin.url', 'nowhere');
        await project.git('config', 'remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*');
        await project.git('branch', '-q', '-u', 'origin/main');
        await project.git('config', 'branch.autoSetupMerge', 'always');
      }
      const run = await unchangedBy(project, () => project.implement('-c', '12'));
      expect(run.code).toBe(0);
      expect(eventsOf(run, 'attempt.started')).toHaveLength(12);
      const branches = (await project.git('for-each-ref', '--format=%(refname)', 'refs/heads/')).split('\n');
      expect(branches).toHaveLength(12 + 2);
    }
  },
  scaled(60_000, 240_000),
);

test('C021 a plain folder where a worktree would go survives, and giro works beside it', async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  const root = join(project.folder, 'worktrees');
  await project.write(
    'giro.toml',
    `${await readFile(join(project.path, 'giro.toml'), 'utf8')}\n[worktree]\nroot = "${root}"\n`,
  );
  const probe = await project.implement('--dry-run');
  expect(probe.code).toBe(0);
  const spec = join(root, await repositoryFolder(project, root), 's1');
  await mkdir(join(spec, 'w1'), { recursive: true });
  await writeFile(join(spec, 'w1', 'mine.txt'), 'mine');
  // The checkout of the gate on the base has the first number; the next would be an agent's.
  await mkdir(join(spec, 'w2'));
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(noticesOf(run)).toContain(`${join(spec, 'w2')} is in the way`);
  expect(await readFile(join(spec, 'w1', 'mine.txt'), 'utf8')).toBe('mine');
  expect(await readdir(join(spec, 'w1'))).toEqual(['mine.txt']);
});

test("C021 an Issue's worktree that was deleted by hand is made again with its commit", async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    agent: 'if [ -f a.txt ]; then echo "second" > b.txt; else echo "first" > a.txt; fi\n',
    verify: 'test = "test -f b.txt"',
  });
  const first = await project.implement();
  expect(first.code).toBe(2);
  const folder = eventsOf(first, 'issue.escalated')[0]?.worktree ?? '';
  await rm(folder, { recursive: true });
  const second = await project.implement();
  expect(second.code).toBe(0);
  expect(existsSync(eventsOf(second, 'attempt.started')[0]?.worktree ?? folder)).toBe(false);
  expect(await project.git('worktree', 'list')).not.toContain('/s1/w');
  expect(await project.show('giro/s1', 'a.txt')).toBe('first');
  expect(await project.show('giro/s1', 'b.txt')).toBe('second');
});

test('C022 a stopped Issue without work goes on from the tip of now, not from an old one', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {} },
    agent:
      'if [ "$GIRO_ISSUE" = 02-b ] && [ ! -f "$HOME/go" ]; then touch "$HOME/waiting"; sleep 60; fi\necho x > "$GIRO_ISSUE.txt"\n',
  });
  const stopped = project.start(['implement', 's1', '--json', '-c', '2']);
  await stopped.event('issue.integrated', (event) => event.issue === '01-a');
  stopped.kill('SIGINT');
  expect((await stopped.ended).signal).toBe('SIGINT');
  await writeFile(join(project.home, 'go'), '');
  const run = await project.implement();
  expect(run.code).toBe(0);
  const tip = eventsOf(run, 'run.recovered')[0]?.tip;
  expect(eventsOf(run, 'attempt.started').find((event) => event.issue === '02-b')?.base).toBe(tip);
});

/** An Issue that is red until there is a second file of its own; then the person's branch moves by two commits. */
async function redAndMovedOn(toml: string): Promise<Project> {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    agent: 'ls > "seen-$GIRO_ATTEMPT.txt"\n',
    verify: 'test = "test ! -f seen-1.txt || test -f seen-2.txt"',
    toml,
  });
  expect((await project.implement()).code).toBe(2);
  for (const name of ['one.txt', 'two.txt']) {
    await project.write(name, name);
    await project.git('add', name);
    await project.git('commit', '-qm', name);
  }
  return project;
}

test('C022 a branch with a commit is brought up to date with a base that moved, and judged together with it', async () => {
  const project = await redAndMovedOn('[integrate]\nbase = "on-start"\n');
  const run = await project.implement();
  expect(run.code, run.stdout).toBe(0);
  expect(await project.show('giro/s1', 'seen-1.txt')).not.toContain('two.txt');
  expect(await project.show('giro/s1', 'seen-2.txt')).toMatch(/^seen-1\.txt$[^]*^two\.txt$/m);
  expect(await project.show('giro/s1', 'two.txt')).toBe('two.txt');
});

test('C022 where the base is not taken along, it is said that it moved on', async () => {
  const project = await redAndMovedOn('');
  const run = await project.implement();
  expect(run.code, run.stdout).toBe(0);
  expect(noticesOf(run)).toContain('main has moved to');
  expect(await project.show('giro/s1', 'two.txt')).toBeNull();
});

test('C022 a branch of an earlier life of the Spec is saved and said, never continued', async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  await project.git('switch', '-q', '-c', 'giro-issue/s1/01-a');
  await project.git('commit', '-q', '--allow-empty', '-m', 'months old');
  const old = await project.head();
  await project.git('switch', '-q', 'main');
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(await project.git('rev-parse', 'refs/giro/salvage/s1/01-a/1')).toBe(old);
  expect(
    eventsOf(run, 'run.notice')
      .map((event) => event.message)
      .join('\n'),
  ).toContain('refs/giro/salvage/s1/01-a/1');
});

test.each([
  '01-fix login',
  '01-a..b',
  '01-a.lock',
  '01-ünï',
  `01-${'x'.repeat(240)}`,
  '01--x',
  '01-Login',
  '01 fix login',
])('C023 the Issue name %j is refused with a fix', async (name) => {
  const project = await makeProject({ issues: {} });
  await project.write(`docs/specs/s1/issues/${name}.md`, '---\nstate: ready\n---\n# One\n\nDo it.\n');
  const run = await project.implement();
  expect(run.code).toBe(1);
  expect(run.stderr).toContain('issues/01');
  expect(await project.git('for-each-ref', 'refs/heads/giro*')).toBe('');
});

test('C023 two names that come to one are never one worktree', async () => {
  const project = await makeProject({ issues: { '02-a-b': {} } });
  await project.write('docs/specs/s1/issues/02-a b.md', '---\nstate: ready\n---\n# One\n\nDo it.\n');
  const run = await project.implement();
  expect([run.code, run.stdout]).toEqual([1, '']);
  expect(run.stderr).toMatch(/issues\/02-a b\.md[\s\S]*rename it to 02-a-b-2\.md/);
});

test.each(['my spec', '../../x', '-x', 'a/b', 's1/../../x', 's1/-x', 's1/a b', '01/..'])(
  'C023 the target %j is refused',
  async (target) => {
    const project = await makeProject({ issues: { '01-a': {} } });
    const run = await project.giro(['implement', '--', target]);
    expect([run.code, run.stdout]).toEqual([1, '']);
    expect(run.stderr).toContain('giro: ');
    expect(await project.git('for-each-ref', 'refs/heads/giro*')).toBe('');
  },
);

test('C024 a repository reached through a symlink is the same repository', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {} },
    agent: 'if [ "$GIRO_ISSUE" = 02-b ] && [ ! -f "$HOME/go" ]; then sleep 60; fi\necho x > "$GIRO_ISSUE.txt"\n',
  });
  const link = join(project.folder, 'link');
  await symlink(project.path, link);
  const first = project.start(['implement', 's1', '--json', '-c', '2'], { cwd: link });
  await first.event('issue.integrated');
  const { worktree } = await first.event('attempt.started', (event) => event.issue === '02-b');
  first.kill('SIGKILL');
  await first.ended;
  await writeFile(join(project.home, 'go'), '');
  const resumed = await project.implement();
  expect(resumed.code).toBe(0);
  expect(eventsOf(resumed, 'attempt.started')).toMatchObject([{ issue: '02-b', worktree }]);
  const status = await project.giro(['status', 's1', '--json'], { cwd: link });
  expect((JSON.parse(status.stdout) as { state: string }).state).toBe('done');
  const worktrees = (await project.git('worktree', 'list', '--porcelain'))
    .split('\n')
    .filter((line) => line.startsWith('worktree '));
  expect(worktrees).toHaveLength(1);
  // Left behind by a kill as well, and cleaned from the link.
  await project.writeIssue('03-c', {});
  await project.start(['implement', 's1', '--json'], { env: killedAt('event issue.integrated#1') }).ended;
  const cleanedUp = await project.giro(['clean', '--yes'], { cwd: link });
  expect([cleanedUp.code, cleanedUp.stderr]).toEqual([0, '']);
  expect(await project.git('worktree', 'list')).not.toContain('/s1/w');
  expect(await project.git('for-each-ref', 'refs/heads/giro-issue/')).toBe('');
  expect((await project.giro(['implement', 's1'], { cwd: link })).code).toBe(0);
});

test("C025 worktrees are outside the repository: the person's tools do not see them", async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {} },
    // Each has a test that is red until the agent goes on.
    agent: [
      'echo "throw new Error()" > "$GIRO_ISSUE.test.mjs"',
      'while [ ! -f "$HOME/go" ]; do sleep 0.05; done',
      'echo x > "$GIRO_ISSUE.txt"; rm "$GIRO_ISSUE.test.mjs"\n',
    ].join('\n'),
  });
  await project.write('mine.test.mjs', "import { test } from 'node:test';\ntest('mine', () => {});\n");
  await project.commit('Spec and settings');
  const run = project.start(['implement', 's1', '--json', '-c', '2']);
  await run.event('attempt.started', (event) => event.issue === '01-a');
  const second = await run.event('attempt.started', (event) => event.issue === '02-b');
  expect(second.worktree.startsWith(`${project.path}/`)).toBe(false);
  expect((await stat(second.worktree)).isDirectory()).toBe(true);
  expect(await project.git('status', '--porcelain')).toBe('');
  expect(await project.git('clean', '-nd')).toBe('');
  const tests = spawnSync(process.execPath, ['--test', '--test-reporter=tap'], { cwd: project.path, encoding: 'utf8' });
  expect([tests.status, /^# tests (\d+)$/m.exec(tests.stdout)?.[1]]).toEqual([0, '1']);
  await writeFile(join(project.home, 'go'), '');
  expect((await run.ended).code).toBe(0);
});

test('C026 the base is the commit the person is on, and it is printed', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: 'git log --first-parent --format=%H > "$HOME/log"\necho x > a.txt\n',
  });
  await project.git('switch', '-q', '-c', 'feature-x');
  for (const name of ['one', 'two', 'three']) {
    await project.write(`${name}.txt`, name);
    await project.commit(name);
  }
  const head = await project.head();
  const run = await project.giro(['implement', 's1']);
  expect(run.code).toBe(0);
  expect(run.stdout).toContain(`base ${head.slice(0, 7)}`);
  expect(await project.git('rev-parse', 'giro/s1^{/snapshot}^1')).toBe(head);
  expect(await project.show('giro/s1', 'three.txt')).toBe('three');
  // Below what giro wrote of the Spec, the agent's HEAD is that commit.
  const snapshot = await project.git('rev-parse', 'giro/s1^{/snapshot}');
  const log = (await readFile(join(project.home, 'log'), 'utf8')).trim().split('\n');
  expect(log.slice(log.indexOf(snapshot), log.indexOf(snapshot) + 2)).toEqual([snapshot, head]);
  expect(await project.git('diff', '--name-only', head, log[0] ?? '', '--', '.', ':!docs/specs')).toBe('');
});

test("C027 an agent that writes to the person's checkout is found out", async () => {
  const project = await makeProject({ issues: { '01-a': {} }, agent: '' });
  await project.write(
    'agent.sh',
    `#!/bin/sh\nmkdir -p ${project.path}/src\necho x > ${project.path}/src/stray.ts\n`,
    0o755,
  );
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(await readFile(join(project.path, 'src/stray.ts'), 'utf8')).toBe('x\n');
  expect(await project.issueFile('01-a')).toContain('src/stray.ts');
  expect(eventsOf(run, 'run.finished')[0]?.lines.join('\n')).toContain('src/stray.ts');
});

test.each([
  ['a branch of its own', 'git switch -q -c mine'],
  ['a detached HEAD', 'git switch -q --detach'],
])('C028 work committed on %s is taken as the files are', async (_name, command) => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: `${command}\necho x > a.txt\ngit add -A\ngit -c user.name=a -c user.email=a@x commit -q -m "my own commit"\n`,
  });
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(await project.show('giro/s1', 'a.txt')).toBe('x');
  expect(await project.issueFile('01-a')).toContain('my own commit');
});

test('C028 work that is only on another branch is saved and is a finding', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    agent: [
      'git switch -q -c mine',
      'echo x > elsewhere.txt',
      'git add -A',
      'git -c user.name=a -c user.email=a@x commit -q -m "only there"',
      'git switch -q --detach HEAD^',
      'echo y > here.txt',
    ].join('\n'),
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(await project.issueFile('01-a')).toMatch(/only there.*refs\/giro\/salvage\/s1\/01-a\/1/);
  expect(await project.show('refs/giro/salvage/s1/01-a/1', 'elsewhere.txt')).toBe('x');
});

test("C032 nothing of giro's own ends up in the commits", async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent:
      'cat > /dev/null\necho noise\necho x > a.txt\ngit add -A\ngit -c user.name=a -c user.email=a@x commit -q -m all\n',
  });
  const run = await project.implement();
  expect(run.code).toBe(0);
  const changed = await project.git('diff', '--name-only', 'main', 'giro/s1', '--', '.', ':!docs/specs');
  expect(changed).toBe('a.txt');
});

async function repositoryFolder(project: Project, root: string): Promise<string> {
  // The name giro gives to the repository's folder: made visible by a first run of another Spec.
  await project.write('docs/specs/probe/SPEC.md', '# Probe\n');
  await project.write('docs/specs/probe/issues/01-x.md', '---\nstate: ready\n---\n# X\n\nDo it.\n');
  await project.giro(['implement', 'probe', '--json']);
  const [name = ''] = await readdir(root);
  return name;
}
