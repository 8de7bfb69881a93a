import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { emptyState, issueStatus, reduce, type RunState } from '../../src/state.js';
import { eventsOf, makeProject } from '../rig/giro.js';

test('C009 a dependency on an id that does not exist is refused before anything starts, with close matches', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-api': {}, '03-ui': { frontmatter: 'depends-on: [02-apii]' } },
  });
  const run = await project.implement();
  expect(run.code).toBe(1);
  expect(run.stderr).toContain('docs/specs/s1/issues/03-ui.md:3:14');
  expect(run.stderr).toContain('02-apii');
  expect(run.stderr).toContain('02-api');
  expect(run.stdout).toBe('');
  expect(await project.git('for-each-ref', 'refs/heads/giro/')).toBe('');
});

test('C009 without other Issues too', async () => {
  const project = await makeProject({ issues: { '03-ui': { frontmatter: 'depends-on: [02-apii]' } } });
  const run = await project.implement();
  expect([run.code, run.stdout]).toEqual([1, '']);
  expect(run.stderr).toMatch(/03-ui\.md:3:14: .*02-apii[\s\S]*the Issues are: 03-ui/);
});

test('C010 a cycle is refused as a path, and an unrelated Issue is not started', async () => {
  const project = await makeProject({
    issues: {
      '01-a': { frontmatter: 'depends-on: [03]' },
      '02-b': { frontmatter: 'depends-on: [01]' },
      '03-c': { frontmatter: 'depends-on: [02]' },
      '04-d': {},
    },
  });
  const run = await project.implement();
  expect(run.code).toBe(1);
  expect(run.stderr).toContain('01-a -> 03-c -> 02-b -> 01-a');
  expect(run.stdout).toBe('');
});

test.each(['01-a', '01-A', '01-a.md', './01-a', '1'])(
  'C011 an Issue that depends on itself as %s is refused',
  async (spelling) => {
    const project = await makeProject({ issues: { '01-a': { frontmatter: `depends-on: ["${spelling}"]` } } });
    const run = await project.implement();
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('docs/specs/s1/issues/01-a.md');
    expect(run.stderr).toMatch(/depends on itself|does not exist|no such Issue|unknown/i);
  },
);

test.each([false, true])(
  'C012 a dependent starts on a base that has its dependency, with a branch left over: %s',
  async (left) => {
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
      agent: [
        'git log --format=%H > "$HOME/log-$GIRO_ISSUE"',
        'if [ "$GIRO_ISSUE" = 02-b ]; then test -f lib/a.ts || exit 9; fi',
        'mkdir -p lib',
        'echo x > "lib/${GIRO_ISSUE#*-}.ts"\n',
      ].join('\n'),
    });
    if (left) await project.git('branch', 'giro-issue/s1/02-b');
    const run = await project.implement();
    expect(run.code).toBe(0);
    const base = eventsOf(run, 'attempt.started').find((event) => event.issue === '02-b')?.base;
    const landed = eventsOf(run, 'issue.integrated').find((event) => event.issue === '01-a')?.commit ?? '';
    expect(base).toBe(landed);
    expect((await readFile(join(project.home, 'log-02-b'), 'utf8')).split('\n')).toContain(landed);
  },
);

test('C013 a dependent starts only after its dependency is on the branch and verified', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    verify: 'test = "true"\n[verify.slow]\nrun = "sleep 1"\non = ["integration"]',
  });
  const run = await project.implement();
  expect(run.code).toBe(0);
  const types = run.events.map((event) => `${event.type} ${'issue' in event ? (event.issue ?? '') : ''}`);
  expect(types.indexOf('attempt.started 02-b')).toBeGreaterThan(types.indexOf('issue.integrated 01-a'));
});

test('C013 when the merged tree is red, the dependent never starts', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    verify: 'test = "true"\n[verify.merged]\nrun = "false"\non = ["integration"]',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'attempt.started').filter((event) => event.issue === '02-b')).toEqual([]);
});

test('C014 status, the plan, what the board folds and the order of starts agree at every step', async () => {
  const needsD = { frontmatter: 'depends-on: [04]' };
  const project = await makeProject({
    issues: {
      '01-a': {},
      '02-b': { frontmatter: 'depends-on: [01]' },
      '03-c': { frontmatter: 'depends-on: [02]' },
      ...{ '04-d': {}, '05-e': needsD, '06-f': needsD, '07-g': needsD },
    },
    agent: 'while [ ! -f "$HOME/go-$GIRO_ISSUE" ]; do sleep 0.05; done\necho x > "$GIRO_ISSUE.txt"\n',
  });
  const status = async (): Promise<Readonly<Record<string, string>>> => {
    const { issues } = JSON.parse((await project.giro(['status', 's1', '--json'])).stdout) as Status;
    return Object.fromEntries(issues.map(({ id, state, waitsFor }) => [id, waitsFor ?? state]));
  };
  const rest = { '05-e': '04-d', '06-f': '04-d', '07-g': '04-d' };
  expect(await status()).toEqual({ '01-a': 'ready', '02-b': '01-a', '03-c': '01-a', '04-d': 'ready', ...rest });
  const plan = await project.giro(['implement', 's1', '--dry-run']);
  expect(plan.stdout).toMatch(/wave 1 +01-a, 04-d\nwave 2 +02-b, 05-e, 06-f, 07-g\nwave 3 +03-c\n/);
  const running = project.start(['implement', 's1', '--json', '-c', '8']);
  const begun = (issue: string) => running.event('attempt.started', (event) => event.issue === issue);
  const lands = async (issue: string): Promise<void> => {
    await writeFile(join(project.home, `go-${issue}`), '');
    await running.event('issue.integrated', (event) => event.issue === issue);
  };
  await Promise.all(['01-a', '04-d'].map(begun));
  const working = 'in-progress';
  expect(await status()).toEqual({ '01-a': working, '02-b': '01-a', '03-c': '01-a', '04-d': working, ...rest });
  await lands('01-a');
  await begun('02-b');
  expect(await status()).toEqual({ '01-a': 'done', '02-b': working, '03-c': '02-b', '04-d': working, ...rest });
  await lands('04-d');
  const freed = ['05-e', '06-f', '07-g'];
  await Promise.all(freed.map(begun));
  const atWork = Object.fromEntries(freed.map((issue) => [issue, working]));
  expect(await status()).toEqual({ '01-a': 'done', '02-b': working, '03-c': '02-b', '04-d': 'done', ...atWork });
  for (const issue of ['02-b', ...freed, '03-c']) await lands(issue);
  const run = await running.ended;
  expect(run.code).toBe(0);
  expect(new Set(Object.values(await status()))).toEqual(new Set(['done']));
  // What the board shows is folded from the events: nobody works whose row still waits, and nobody waits for what has landed.
  const shown = run.events.reduce<RunState>((state, event) => {
    const next = reduce(state, event);
    for (const { id } of next.issues.values()) {
      const of = issueStatus(next.issues, id);
      if (of.kind === 'waiting') expect(issueStatus(next.issues, of.on).kind).not.toBe('done');
    }
    return next;
  }, emptyState);
  expect([...shown.issues.keys()].map((id) => issueStatus(shown.issues, id).kind)).toEqual(Array(7).fill('done'));
});

interface Status {
  readonly issues: readonly { readonly id: string; readonly state: string; readonly waitsFor?: string }[];
}
