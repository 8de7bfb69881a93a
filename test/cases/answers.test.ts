import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { worktreeOf } from '../rig/clean.js';
import { makeBarrier } from '../rig/fifo.js';
import { eventsOf, makeProject, type Project } from '../rig/giro.js';

const prompt = (project: Project, name: string): Promise<string> => readFile(join(project.home, name), 'utf8');

test('C029 what an agent took from another through the shared stash does not land unnoticed', async () => {
  const project = await makeProject({
    files: { 'a.ts': 'a\n', 'b.ts': 'b\n' },
    issues: { '01-a': { frontmatter: 'touches: [a.ts]' }, '02-b': { frontmatter: 'touches: [b.ts]' } },
    budget: 'attempts = 1',
    toml: '[protect]\nscope = "strict"\n',
    // B stashes after A, and A pops what is on top.
    agent: [
      'wait_for() { while [ ! -e "$HOME/$1" ]; do sleep 0.05; done; }',
      'if [ "$GIRO_ISSUE" = 01-a ]; then',
      '  echo mine > a.ts; git stash -q; touch "$HOME/a-stashed"; wait_for b-stashed; git stash pop -q',
      '  touch "$HOME/a-popped"; git add -A; git -c user.name=a -c user.email=a@b commit -qm a',
      'else',
      '  wait_for a-stashed; echo theirs > b.ts; git stash -q; touch "$HOME/b-stashed"; wait_for a-popped',
      'fi',
    ].join('\n'),
  });
  const run = await project.implement('-c', '2');
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'issue.integrated')).toEqual([]);
  const judged = eventsOf(run, 'attempt.judged').find((event) => event.issue === '01-a');
  expect(judged?.findings.some((finding) => finding.file === 'b.ts')).toBe(true);
  expect(await project.show('giro/s1', 'b.ts')).toBe('b');
});

test('C030 agents that another one killed are tried again for free, and nothing unfinished is merged', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {}, '03-c': {} },
    budget: 'attempts = 1',
    // By the ids they wrote down, which is what a kill by name comes to.
    agent: [
      'echo $$ > "$HOME/$GIRO_ISSUE.pid"',
      'if [ "$GIRO_ISSUE" = 01-a ]; then',
      '  for other in 02-b 03-c; do',
      '    while [ ! -s "$HOME/$other.pid" ]; do sleep 0.05; done',
      '    kill -9 "$(cat "$HOME/$other.pid")"',
      '  done',
      'elif [ "$GIRO_ATTEMPT" = 1 ]; then',
      '  echo half > "$GIRO_ISSUE.txt"; sleep 60',
      'fi',
      'echo whole > "$GIRO_ISSUE.txt"',
    ].join('\n'),
  });
  const run = await project.implement('-c', '3');
  expect(run.code).toBe(0);
  const killed = eventsOf(run, 'attempt.finished').filter((event) => event.attempt === 1 && event.issue !== '01-a');
  expect(killed).toHaveLength(2);
  for (const event of killed) {
    expect(event).toMatchObject({ result: 'operation', ended: { kind: 'signalled', signal: 'SIGKILL' } });
  }
  for (const id of ['02-b', '03-c']) expect(await project.show('giro/s1', `${id}.txt`)).toBe('whole');
});

test('C040 an agent that can edit but not commit: giro commits its files', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: [
      'own="$(git rev-parse --absolute-git-dir)"',
      'touch "$own/index.lock"; chmod a-w "$own"',
      'echo one > one.txt; echo two > two.txt',
      'if git add -A 2> "$HOME/refused" && git commit -qm mine; then exit 9; fi',
      'exit 0',
    ].join('\n'),
  });
  const run = await project.implement();
  expect(await prompt(project, 'refused')).toContain('index.lock');
  expect(run.code).toBe(0);
  expect(await project.show('giro/s1', 'one.txt')).toBe('one');
  expect(await project.show('giro/s1', 'two.txt')).toBe('two');
});

test('C071 what a person edits, adds and takes away between two runs is taken in, and said', async () => {
  const project = await makeProject({
    issues: {
      ...{ '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' }, '03-c': { frontmatter: 'depends-on: [02]' } },
      '05-e': {},
    },
    budget: 'attempts = 1',
    agent: 'cat > "$HOME/prompt-$GIRO_ISSUE-$GIRO_ATTEMPT"\necho "$GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"\n',
    verify: 'test = "{ ! test -f 02-b.txt && ! test -f 05-e.txt; } || ! test -f \\"$HOME/red\\""',
  });
  await writeFile(join(project.home, 'red'), '');
  expect((await project.implement()).code).toBe(2);
  const kept = await project.git('rev-parse', 'giro-issue/s1/05-e');
  await rm(join(project.path, 'docs/specs/s1/issues/05-e.md'));
  await project.writeIssue('01-a', { body: 'Do a otherwise.' });
  await project.writeIssue('02-b', { body: 'Do b, with the new text.' });
  await project.writeIssue('04-d', { body: 'Do d as well.' });
  await rm(join(project.path, 'docs/specs/s1/issues/03-c.md'));
  await rm(join(project.home, 'red'));
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(await prompt(project, 'prompt-02-b-2')).toContain('Do b, with the new text.');
  expect(await prompt(project, 'prompt-04-d-1')).toContain('Do d as well.');
  const notices = eventsOf(run, 'run.notice').map((event) => event.message);
  expect(notices.join('\n')).toMatch(/01-a\.md was edited after it was integrated/);
  for (const id of ['03-c', '05-e']) expect(notices.join('\n')).toContain(`${id}.md is gone from your checkout`);
  expect(notices.join('\n')).toMatch(/05-e\.md is gone .*; its branch is kept/);
  expect(await project.git('rev-parse', 'giro-issue/s1/05-e')).toBe(kept);
  // Neither run again nor undone: what A made from its earlier text stays.
  expect(await project.show('giro/s1', '01-a.txt')).toBe('1');
  expect(
    eventsOf(run, 'attempt.started')
      .map((event) => event.issue)
      .sort(),
  ).toEqual(['02-b', '04-d']);
  expect(await project.issueFile('02-b')).not.toContain('depends-on');
});

/** 01-a is red until `fixed.txt` is there. */
async function broken(): Promise<Project> {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    verify: 'test = "! test -f 01-a.txt || test -f fixed.txt"',
  });
  expect((await project.implement()).code).toBe(2);
  return project;
}

test('C072 a fix that a person committed on the branch is judged and merged without an agent', async () => {
  const project = await broken();
  await project.git('worktree', 'add', '-q', '../mend', 'giro-issue/s1/01-a');
  await project.write('../mend/fixed.txt', 'by hand');
  await project.git('-C', '../mend', 'add', '-A');
  await project.git('-C', '../mend', 'commit', '-qm', 'fix it');
  await project.git('worktree', 'remove', '../mend');
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'attempt.started')).toEqual([]);
  expect(await project.show('giro/s1', 'fixed.txt')).toBe('by hand');
});

test.each([true, false])(
  'C072 a conflict that a person resolved in its worktree, committed there: %s',
  async (committed) => {
    const project = await makeProject({
      files: { 'line.txt': 'base\n' },
      issues: { '01-a': {}, '02-b': {} },
      agent: [
        'if [ "$GIRO_ISSUE" = 01-a ]; then echo a > line.txt; exit 0; fi',
        ': < "$HOME/a-landed"; echo b > line.txt; echo b > b.txt',
      ].join('\n'),
      budget: 'attempts = 1',
    });
    const landed = await makeBarrier(join(project.home, 'a-landed'));
    const started = project.start(['implement', 's1', '--json', '-c', '2']);
    await started.event('issue.integrated', (event) => event.issue === '01-a');
    await landed.open();
    const first = await started.ended;
    expect(first.code).toBe(2);
    expect(eventsOf(first, 'candidate.conflicted')).toMatchObject([{ issue: '02-b', files: ['line.txt'] }]);
    const folder = await worktreeOf(project, '02-b');
    const git = (...args: readonly string[]): Promise<string> => project.git('-C', folder, ...args);
    // What the agent left is in the files; git merges nothing over it before it is committed.
    await git('add', '-A');
    await git('commit', '-qm', 'the work as it is');
    await git('merge', '--no-commit', 'giro/s1').catch(() => 'a conflict');
    await writeFile(join(folder, 'line.txt'), 'a\nb\n');
    if (committed) {
      await git('add', '-A');
      await git('commit', '-qm', 'both');
    }
    const run = await project.implement();
    expect(run.code, run.stdout).toBe(0);
    expect(eventsOf(run, 'attempt.started')).toEqual([]);
    expect(eventsOf(run, 'gate.finished').length).toBeGreaterThan(0);
    expect(await project.show('giro/s1', 'line.txt')).toBe('a\nb');
    expect(await project.show('giro/s1', 'b.txt')).toBe('b');
  },
);

test('C072 a fix that was left uncommitted in the worktree is seen, and never overwritten', async () => {
  const project = await broken();
  const { stdout } = await project.giro(['status', 's1', '--json']);
  const { issues } = JSON.parse(stdout) as { issues: readonly { readonly worktree?: string }[] };
  await writeFile(join(issues[0]?.worktree ?? '', 'fixed.txt'), 'by hand');
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'attempt.started')).toEqual([]);
  expect(await project.show('giro/s1', 'fixed.txt')).toBe('by hand');
});
