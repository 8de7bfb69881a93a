import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventsOf, makeProject, unchangedBy, type GiroRun, type Project } from '../rig/giro.js';
import { StandIn, type Invocation } from '../rig/stand-in.js';

/** A project with one Issue that an agent could not do: it asks a human. */
async function asking(): Promise<{ readonly project: Project; readonly worktree: string; readonly run: GiroRun }> {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1\nattempt-timeout = "60s"',
    agent: 'echo "$GIRO_ATTEMPT" >> "$HOME/ran"\necho broken > a.txt\n',
    verify: 'test = "grep -q fixed a.txt"',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  return { project, run, worktree: eventsOf(run, 'issue.escalated')[0]?.worktree ?? '' };
}

function attemptsIn(run: GiroRun): number {
  return eventsOf(run, 'attempt.started').length;
}

/** An agent that the test plays. */
async function played(
  issues: Parameters<typeof makeProject>[0]['issues'],
): Promise<{ readonly project: Project; readonly agent: StandIn }> {
  const agent = await StandIn.open();
  onTestFinished(() => agent.close());
  return { agent, project: await makeProject({ issues, run: agent.command('agent') }) };
}

async function finish(call: Invocation): Promise<void> {
  await call.write({ [`${call.env['GIRO_ISSUE'] ?? ''}.txt`]: 'by the agent' });
  await call.exit();
}

describe('work of a person on an escalated Issue is judged and integrated without an agent', () => {
  test('a commit on its branch', async () => {
    const { project } = await asking();
    await project.git('worktree', 'add', '-q', join(project.folder, 'mine'), 'giro-issue/s1/01-a');
    await writeFile(join(project.folder, 'mine/a.txt'), 'fixed\n');
    await project.git('-C', join(project.folder, 'mine'), 'commit', '-qam', 'fix it');
    // They still stand on the branch: it is not moved under them.
    const refused = await unchangedBy(project, () => project.implement());
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /giro-issue\/s1\/01-a is checked out in .*mine; .*\n.*git -C .*mine switch --detach/,
    );
    await project.git('-C', join(project.folder, 'mine'), 'switch', '-q', '--detach');
    const run = await unchangedBy(project, () => project.implement());
    expect(run.code).toBe(0);
    expect(attemptsIn(run)).toBe(0);
    expect(await project.show('giro/s1', 'a.txt')).toBe('fixed');
    expect(await project.issueFile('01-a')).toMatch(/### Attempt 2 · .* · by hand\n/);
    expect(await project.git('log', '--format=%s', 'giro/s1')).toContain('fix it');
  });

  test('an amended commit of the engine', async () => {
    const { project } = await asking();
    const mine = join(project.folder, 'mine');
    await project.git('worktree', 'add', '-q', mine, 'giro-issue/s1/01-a');
    await writeFile(join(mine, 'a.txt'), 'fixed\n');
    await project.git('-C', mine, 'commit', '-q', '--amend', '--no-edit', '-a');
    await project.git('worktree', 'remove', mine);
    const run = await unchangedBy(project, () => project.implement());
    expect(run.code).toBe(0);
    expect(attemptsIn(run)).toBe(0);
    expect(await project.show('giro/s1', 'a.txt')).toBe('fixed');
    expect(await project.issueFile('01-a')).toMatch(/### Escalated[^]*### Answered[^]*### Attempt 2 · .* · by hand\n/);
  });

  test.each(['committed', 'not committed'])('changes in its worktree, %s', async (how) => {
    const { project, worktree } = await asking();
    await writeFile(join(worktree, 'a.txt'), 'fixed\n');
    await writeFile(join(worktree, 'new.txt'), 'new\n');
    if (how === 'committed') {
      await project.git('-C', worktree, 'add', '-A');
      await project.git('-C', worktree, 'commit', '-qm', 'fix it');
    }
    const run = await unchangedBy(project, () => project.implement());
    expect(run.code).toBe(0);
    expect(attemptsIn(run)).toBe(0);
    expect([await project.show('giro/s1', 'a.txt'), await project.show('giro/s1', 'new.txt')]).toEqual([
      'fixed',
      'new',
    ]);
  });

  test('that is not enough is followed by an agent, on top of it', async () => {
    const { project, worktree } = await asking();
    await writeFile(join(worktree, 'notes.txt'), 'half a fix\n');
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'attempt.judged').map((event) => event.verdict)).toEqual(['fail']);
    const again = await project.implement();
    expect(attemptsIn(again)).toBe(1);
    expect(await project.show('giro-issue/s1/01-a', 'notes.txt')).toBe('half a fix');
  });

  test('with an Issue file that was edited there, which is taken in', async () => {
    const { project } = await asking();
    const mine = join(project.folder, 'mine');
    await project.git('worktree', 'add', '-q', mine, 'giro-issue/s1/01-a');
    await writeFile(join(mine, 'a.txt'), 'fixed\n');
    const path = 'docs/specs/s1/issues/01-a.md';
    const text = await project.show('giro-issue/s1/01-a', path);
    await writeFile(join(mine, path), `${text?.replace('Do 01-a.', 'Do 01-a by hand.') ?? ''}\n`);
    await project.git('-C', mine, 'commit', '-qam', 'fix it');
    await project.git('worktree', 'remove', mine);
    expect((await project.implement()).code).toBe(0);
    expect(await project.issueFile('01-a')).toContain('Do 01-a by hand.');
  });
});

test('what a broken set-up left in a worktree is nobody’s work', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 2\nfailures = 1\nattempt-timeout = "60s"',
    toml: `[worktree]\nsetup = ${JSON.stringify('if [ -f "$HOME/offline" ]; then echo junk > README.md; exit 1; fi')}\n`,
  });
  await writeFile(join(project.home, 'offline'), '');
  const broken = await project.implement();
  expect(broken.code).toBe(2);
  expect(eventsOf(broken, 'issue.escalated')).toMatchObject([{ cause: 'operation-failures' }]);
  await rm(join(project.home, 'offline'));
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(attemptsIn(run)).toBe(1);
  expect(await project.show('giro/s1', '01-a.txt')).toBe('by 01-a');
  expect(await project.show('giro/s1', 'README.md')).toBe('# Test');
});

describe('what began ends with run.finished', () => {
  test('when the Spec cannot be taken up', async () => {
    const { project } = await asking();
    await project.git('worktree', 'add', '-q', join(project.folder, 'mine'), 'giro-issue/s1/01-a');
    const run = await project.implement();
    expect(run.code).toBe(1);
    expect(eventsOf(run, 'run.started')).toHaveLength(1);
    expect(run.events.at(-1)).toMatchObject({
      type: 'run.finished',
      spec: 's1',
      exit: 1,
      reason: 'error',
      tip: (await project.git('rev-parse', 'giro/s1')).trim(),
      done: 0,
      total: 1,
      lines: [expect.stringContaining('is checked out in'), expect.stringContaining('switch --detach')],
    });
    const plain = await project.giro(['implement', 's1']);
    expect(plain.stdout).toMatch(/finished: error, 0 of 1 done\n$/);
    expect(plain.stdout).not.toContain('is checked out in');
    expect(plain.stderr).toContain('is checked out in');
  });

  test('when git is taken away under it, which is no answer that giro knows', async () => {
    const { project, agent } = await played({ '01-a': {} });
    const started = project.start(['implement', 's1', '--json']);
    const call = await agent.nextInvocation('agent');
    await rename(join(project.path, '.git'), join(project.path, '.git-away'));
    await finish(call);
    const run = await started.ended;
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/this is a bug of giro|the repository lacks a part of its history/);
    expect(run.events.at(-1)).toMatchObject({ type: 'run.finished', exit: 1, reason: 'error' });
  });
});

test('a Spec that is done goes on with an Issue that is new', async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  expect((await project.implement()).code).toBe(0);
  await project.writeIssue('02-b', { frontmatter: 'depends-on: [01]' });
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'attempt.started').map((event) => event.issue)).toEqual(['02-b']);
  expect(eventsOf(run, 'spec.imported')).toMatchObject([{ files: ['docs/specs/s1/issues/02-b.md'] }]);
});

test('a branch that somebody moves while its agent works stops that Issue only, and nothing is lost', async () => {
  const { project, agent } = await played({ '01-a': {}, '02-b': {} });
  const started = project.start(['implement', 's1', '--json', '-c', '2']);
  const calls = [await agent.nextInvocation('agent'), await agent.nextInvocation('agent')];
  const [first] = calls.filter((call) => call.env['GIRO_ISSUE'] === '01-a');
  const theirs = await project.git(
    'commit-tree',
    '-p',
    'giro-issue/s1/01-a',
    '-m',
    'theirs',
    'giro-issue/s1/01-a^{tree}',
  );
  await project.git('update-ref', 'refs/heads/giro-issue/s1/01-a', theirs);
  for (const call of calls) await finish(call);
  const run = await started.ended;
  expect(run.stderr).toBe('');
  expect(run.code).toBe(2);
  expect(first?.isEnded).toBe(true);
  expect(eventsOf(run, 'issue.integrated').map((event) => event.issue)).toEqual(['02-b']);
  expect(eventsOf(run, 'issue.escalated')).toMatchObject([{ issue: '01-a', cause: 'operation-failures' }]);
  expect(await project.git('rev-parse', 'giro-issue/s1/01-a')).toBe(theirs);
  const saved = /^saved: (refs\/giro\/salvage\/\S+)$/m.exec(await project.issueFile('01-a'))?.[1] ?? '';
  expect(await project.show(saved, '01-a.txt')).toBe('by the agent');
  expect(
    eventsOf(run, 'run.notice')
      .map((event) => event.message)
      .join('\n'),
  ).toContain(saved);
  // Their commit changes no code; what the agent left is in its folder still, and is judged.
  const again = await project.implement();
  expect(again.code).toBe(0);
  expect(attemptsIn(again)).toBe(0);
  expect(await project.show('giro/s1', '01-a.txt')).toBe('by the agent');
});

test('what a person puts on giro/<spec> while it is validated is validated too', async () => {
  const judge = await StandIn.open();
  onTestFinished(() => judge.close());
  const project = await makeProject({
    issues: { '01-a': {} },
    verify: `test = "true"\n[verify.all]\nrun = ${JSON.stringify(judge.shellCommand('all'))}\non = ["spec"]\n`,
  });
  const started = project.start(['implement', 's1', '--json']);
  const first = await judge.nextInvocation('all');
  const blob = await project.git('hash-object', '-w', 'README.md');
  const tree = `${await project.git('ls-tree', 'giro/s1')}\n100644 blob ${blob}\tpersons.txt`;
  await writeFile(join(project.home, 'tree'), `${tree}\n`);
  const mixed = await project.git('-c', 'alias.t=!git mktree < "$HOME/tree"', 't');
  const theirs = await project.git('commit-tree', '-p', 'giro/s1', '-m', 'theirs', mixed);
  await project.git('update-ref', 'refs/heads/giro/s1', theirs);
  await first.exit();
  const second = await judge.nextInvocation('all');
  expect(await second.read('persons.txt')).toBe('# Test\n');
  await second.exit();
  const run = await started.ended;
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'spec.validated')).toHaveLength(2);
  expect(await project.show('giro/s1', 'persons.txt')).toBe('# Test');
});

describe('two runs', () => {
  test('of one Spec at once: the second names the first and does nothing', async () => {
    const { project, agent } = await played({ '01-a': {} });
    const first = project.start(['implement', 's1', '--json']);
    const call = await agent.nextInvocation('agent');
    const second = await project.implement();
    expect(second.code).toBe(1);
    expect(second.stdout).toBe('');
    expect(second.stderr).toContain(`process ${String(first.pid)}`);
    await finish(call);
    expect((await first.ended).code).toBe(0);
  });

  test('started together: one goes on, the other exits 1', async () => {
    const project = await makeProject({
      issues: { '01-a': {} },
      agent: 'while [ ! -f "$HOME/go" ]; do sleep 0.02; done\necho x > a.txt\n',
    });
    const runs = [project.start(['implement', 's1', '--json']), project.start(['implement', 's1', '--json'])];
    const loser = await Promise.race(runs.map((run) => run.ended));
    expect(loser.code).toBe(1);
    expect(loser.stderr).toMatch(
      /giro is already running on s1: process \d+|moved while the run was starting|another giro/,
    );
    await writeFile(join(project.home, 'go'), '');
    const codes = (await Promise.all(runs.map((run) => run.ended))).map((run) => run.code);
    expect(codes.sort()).toEqual([0, 1]);
  });
});

describe('one Issue as the target', () => {
  test('whose dependencies are not integrated names them and starts nothing', async () => {
    const project = await makeProject({ issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } } });
    const run = await unchangedBy(project, () => project.giro(['implement', 's1/02']));
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('02-b depends on 01-a, not integrated yet');
    expect(await project.git('for-each-ref', 'refs/heads/giro*')).toBe('');
  });

  test('that is ready is the only one that runs; then its dependents may', async () => {
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' }, '03-c': {} },
    });
    const first = await project.giro(['implement', 's1/01', '--json']);
    expect(first.code).toBe(0);
    expect(eventsOf(first, 'issue.integrated').map((event) => event.issue)).toEqual(['01-a']);
    expect(await project.show('giro/s1', 'docs/specs/s1/SPEC.md')).toContain('state: active');
    const second = await project.giro(['implement', 'docs/specs/s1/issues/02-b.md', '--json']);
    expect(second.code).toBe(0);
    expect(eventsOf(second, 'attempt.started').map((event) => event.issue)).toEqual(['02-b']);
    expect((await project.implement()).code).toBe(0);
  });

  test('that asks is the only one that is answered; what else was asked is still asked', async () => {
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': {} },
      budget: 'attempts = 1\nattempt-timeout = "60s"',
      agent: 'echo "$GIRO_ISSUE" > "$GIRO_ISSUE.txt"\n[ -e "$HOME/allowed" ]\n',
    });
    expect((await project.implement()).code).toBe(2);
    await writeFile(join(project.home, 'allowed'), '');
    const one = await project.giro(['implement', 's1/02', '--json']);
    expect(one.code).toBe(0);
    expect(eventsOf(one, 'attempt.started').map((event) => event.issue)).toEqual(['02-b']);
    expect(await project.issueFile('01-a')).toMatch(/state: needs-human/);
    expect(await project.issueFile('01-a')).not.toContain('### Answered');
    expect(await project.issueFile('02-b')).toContain('### Answered');
    expect(await project.show('giro/s1', 'docs/specs/s1/SPEC.md')).toContain('state: needs-human');
    const all = await project.implement();
    expect(all.code).toBe(0);
    expect(eventsOf(all, 'attempt.started').map((event) => event.issue)).toEqual(['01-a']);
  });

  test('that is done already is proved on the tip, not believed', async () => {
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': {} },
      verify: 'test = "! test -f \\"$HOME/red\\""',
    });
    await project.write('docs/specs/s1/issues/01-a.md', '---\nstate: done\n---\n# A\n\nDone, they say.\n');
    await writeFile(join(project.home, 'red'), '');
    const red = await project.giro(['implement', 's1/01', '--json']);
    expect(red.code).toBe(2);
    await rm(join(project.home, 'red'));
    expect((await project.giro(['implement', 's1/01', '--json'])).code).toBe(0);
  });
});

describe('what a person should know is said in one line each', () => {
  test('uncommitted files, ignored files, removed Issues', async () => {
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': {} },
      verify: 'test = "test -f never"',
      budget: 'attempts = 1\nattempt-timeout = "60s"',
    });
    await project.write('docs/specs/s1/issues/notes.md', 'notes');
    const notices = (run: GiroRun) => eventsOf(run, 'run.notice').map((event) => event.message);
    const first = notices(await project.implement());
    expect(first).toContain('4 files of docs/specs/s1 not committed: taken as they stand in your checkout');
    expect(first).toContain('2 files elsewhere not committed: not part of the base');
    expect(first.join('\n')).toContain('not an Issue, ignored: docs/specs/s1/issues/notes.md');
    await rm(join(project.path, 'docs/specs/s1/issues/02-b.md'));
    await rm(join(project.path, 'docs/specs/s1/issues/notes.md'));
    const second = notices(await project.implement());
    expect(second).toContain(
      'docs/specs/s1/issues/02-b.md is gone from your checkout: taken out of the Spec; its branch is kept',
    );
    expect(await project.git('rev-parse', '--verify', '-q', 'giro-issue/s1/02-b')).not.toBe('');
  });

  test('branches of an earlier life are saved and not continued', async () => {
    const { project } = await asking();
    const old = await project.git('rev-parse', 'giro-issue/s1/01-a');
    await project.git('update-ref', '-d', 'refs/heads/giro/s1');
    const run = await project.implement();
    expect(eventsOf(run, 'spec.snapshotted')[0]?.issues).toMatchObject([{ state: 'ready', attempts: 0 }]);
    const message = eventsOf(run, 'run.notice')
      .map((event) => event.message)
      .find((text) => text.includes('an older branch'));
    const ref = /saved as (\S+) and/.exec(message ?? '')?.[1] ?? '';
    expect(await project.git('rev-parse', ref)).toBe(old);
  });
});

test('the branch checked out somewhere: nothing starts, and the way out works', async () => {
  const { project } = await asking();
  const mine = join(project.folder, 'my worktree');
  await project.git('worktree', 'add', '-q', mine, 'giro/s1');
  const run = await unchangedBy(project, () => project.implement());
  expect(run.code).toBe(1);
  const command = /free it with: git (.*)$/m.exec(run.stderr)?.[1];
  expect(command).toBe(`-C '${mine}' switch --detach`);
  await project.git('-C', mine, 'switch', '-q', '--detach');
  expect((await project.implement()).code).toBe(2);
});
