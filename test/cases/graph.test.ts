import { expect, test } from 'vitest';
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

test('C012 a dependent starts on a base that has its dependency', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    agent:
      'if [ "$GIRO_ISSUE" = 02-b ]; then test -f lib/a.ts || exit 9; fi\nmkdir -p lib\necho x > "lib/${GIRO_ISSUE#*-}.ts"\n',
  });
  await project.git('branch', 'giro-issue/s1/02-b');
  const run = await project.implement();
  expect(run.code).toBe(0);
  const base = eventsOf(run, 'attempt.started').find((event) => event.issue === '02-b')?.base;
  expect(base).toBe(eventsOf(run, 'issue.integrated').find((event) => event.issue === '01-a')?.commit);
});

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

test('C014 what status, the plan and the run say about readiness agrees', async () => {
  const project = await makeProject({
    issues: {
      '01-a': {},
      '02-b': { frontmatter: 'depends-on: [01]' },
      '03-c': { frontmatter: 'depends-on: [02]' },
      '04-d': {},
    },
  });
  const before = JSON.parse((await project.giro(['status', 's1', '--json'])).stdout) as Status;
  expect(before.issues.map((issue) => [issue.id, issue.waitsFor ?? 'ready'])).toEqual([
    ['01-a', 'ready'],
    ['02-b', '01-a'],
    ['03-c', '01-a'],
    ['04-d', 'ready'],
  ]);
  const plan = await project.giro(['implement', 's1', '--dry-run']);
  expect(plan.stdout).toMatch(/wave 1 +01-a, 04-d\nwave 2 +02-b\nwave 3 +03-c\n/);
  const run = await project.implement('-c', '4');
  const started = eventsOf(run, 'attempt.started').map((event) => event.issue);
  expect(new Set(started.slice(0, 2))).toEqual(new Set(['01-a', '04-d']));
  expect(started.slice(2)).toEqual(['02-b', '03-c']);
  const after = JSON.parse((await project.giro(['status', 's1', '--json'])).stdout) as Status;
  expect(after.issues.map((issue) => [issue.state, issue.waitsFor])).toEqual(Array(4).fill(['done', undefined]));
});

interface Status {
  readonly issues: readonly { readonly id: string; readonly state: string; readonly waitsFor?: string }[];
}
