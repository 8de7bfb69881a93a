import { describe, expect, onTestFinished, test } from 'vitest';
import { makeProject, unchangedBy, type Project } from '../rig/giro.js';
import { StandIn } from '../rig/stand-in.js';

async function status(project: Project, target = 's1'): Promise<unknown> {
  const run = await unchangedBy(project, () => project.giro(['status', target, '--json']));
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  return JSON.parse(run.stdout) as unknown;
}

/** 01-a can never be green; 02-b and 03-c hang on it; 04-d lands. */
async function stuck(): Promise<Project> {
  const project = await makeProject({
    issues: {
      '01-a': {},
      '02-b': { frontmatter: 'depends-on: [01]' },
      '03-c': { frontmatter: 'depends-on: [02]' },
      '04-d': {},
    },
    verify: 'test = "! test -f 01-a.txt"',
    budget: 'attempts = 1\nattempt-timeout = "60s"',
  });
  expect((await project.implement()).code).toBe(2);
  return project;
}

/** Of calls that report nothing. */
function unknown(calls: number) {
  return { calls, costUsd: 0, unknownCosts: calls, tokens: 0, unknownTokens: calls };
}

describe('giro status <spec> --json', () => {
  test('has exactly the agreed shape, with the root cause of what waits', async () => {
    const project = await stuck();
    const [base, tip] = await Promise.all(['main', 'giro/s1'].map((ref) => project.git('rev-parse', ref)));
    const issue = (id: string, wave: number, dependsOn: readonly string[], more: object): object => ({
      id,
      title: `Issue ${id}`,
      attempts: 0,
      wave,
      dependsOn,
      ...more,
    });
    expect(await status(project)).toEqual({
      spec: 's1',
      title: 'A test Spec',
      state: 'needs-human',
      base,
      tip,
      running: null,
      spending: unknown(2),
      issues: [
        issue('01-a', 1, [], {
          state: 'needs-human',
          attempts: 1,
          spending: unknown(1),
          branch: 'giro-issue/s1/01-a',
          question: expect.stringContaining('gate test failed') as unknown,
          worktree: expect.stringContaining('/s1/w') as unknown,
        }),
        issue('02-b', 2, ['01-a'], { state: 'ready', waitsFor: '01-a' }),
        issue('03-c', 3, ['02-b'], { state: 'ready', waitsFor: '01-a' }),
        issue('04-d', 1, [], { state: 'done', attempts: 1, spending: unknown(1), branch: 'giro-issue/s1/04-d' }),
      ],
    });
  });

  test('before a first run reads the checkout', async () => {
    const project = await makeProject({ issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } } });
    expect(await status(project)).toMatchObject({
      state: 'draft',
      base: null,
      tip: null,
      issues: [
        { id: '01-a', state: 'ready' },
        { id: '02-b', waitsFor: '01-a' },
      ],
    });
  });

  test('while a run goes on says by whom, and in which phase', async () => {
    const agent = await StandIn.open();
    onTestFinished(() => agent.close());
    const project = await makeProject({ issues: { '01-a': {} }, run: agent.command('agent') });
    const started = project.start(['implement', 's1', '--json']);
    const call = await agent.nextInvocation('agent');
    expect(await status(project)).toMatchObject({
      state: 'active',
      running: { pid: started.pid },
      issues: [{ state: 'in-progress', phase: 'working', attempts: 1 }],
    });
    await call.write({ 'a.txt': 'a' });
    await call.exit();
    expect((await started.ended).code).toBe(0);
    expect(await status(project)).toMatchObject({
      state: 'done',
      running: null,
      issues: [{ state: 'done', attempts: 1 }],
    });
  });
});

describe('giro status for people', () => {
  test('answers why nothing is running, and what to do', async () => {
    const project = await stuck();
    const { stdout, code } = await project.giro(['status', 's1']);
    expect(code).toBe(0);
    const lines = stdout.split('\n');
    expect(lines.find((line) => line.includes('03-c'))).toContain('waits for 01-a, which needs a human');
    expect(stdout).toContain('nothing is running on it');
    expect(stdout).toContain('asks for you: 01-a (details: giro status s1/01-a)');
    expect(stdout).toContain('next: giro implement s1');
  });

  test('tells the story of one Issue, of its own branch while that is ahead', async () => {
    const project = await stuck();
    expect((await project.giro(['status', 's1/1'])).stdout).toMatch(/tried {6}1 attempt[^]*QUESTION/);
    expect((await project.giro(['status', 's1/04'])).stdout).toMatch(/### Attempt 1 [^]*### Integrated/);
    expect((await project.giro(['status', 's1/02'])).stdout).toContain('no attempt yet');
    // As if giro was killed before it could show the escalation on giro/s1.
    await project.git('update-ref', 'refs/heads/giro/s1', 'giro/s1~3');
    expect(await project.issueFile('01-a')).not.toContain('Escalated');
    const { stdout } = await project.giro(['status', 's1/01-a']);
    expect(stdout).toMatch(/^! 01-a .*needs-human/);
    expect(stdout).toContain('QUESTION');
  });

  test('an Issue that is not there is an error that names those that are', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    for (const more of [[], ['--json']]) {
      const run = await project.giro(['status', 's1/07', ...more]);
      expect(run.code).toBe(1);
      expect(run.stdout).toBe('');
      expect(run.stderr).toContain('no Issue "07"');
      expect(run.stderr).toContain('known: 01-a');
    }
  });

  test('a Spec that is not there is an error, and so is a target that is none', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    for (const target of ['s2', 'A b', 'github:o/r', '../x']) {
      const run = await project.giro(['status', target]);
      expect([run.code, run.stdout]).toEqual([1, '']);
      expect(run.stderr).toMatch(/^giro: /);
    }
  });
});

describe('giro status of everything', () => {
  test('lists every Spec, by its own name or as the backlog', async () => {
    const project = await stuck();
    await project.write('docs/specs/later/SPEC.md', '# Later\n\nSome day.\n');
    await project.write('docs/specs/templates/README.md', 'no Spec');
    const all = await project.giro(['status']);
    expect(all.code).toBe(0);
    expect(all.stdout.split('\n').slice(0, 2)).toEqual([
      'later  draft        0/0 done  Later',
      's1     needs-human  1/4 done, 1 need a human  A test Spec',
    ]);
    expect((await project.giro(['status', 'docs/specs'])).stdout).toBe(all.stdout);
    const json = JSON.parse((await project.giro(['status', 'docs/specs', '--json'])).stdout) as {
      specs: { spec: string }[];
    };
    expect(json.specs.map((spec) => spec.spec)).toEqual(['later', 's1']);
  });

  test('one that cannot be read does not hide the others', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    await project.write('docs/specs/broken/SPEC.md', '---\nstate: [\n---\n# Broken\n');
    const run = await project.giro(['status']);
    expect(run.code).toBe(1);
    expect(run.stdout).toContain('s1');
    expect(run.stderr).toContain('docs/specs/broken/SPEC.md');
  });

  test('says what to do when there is none', async () => {
    const project = await makeProject({ issues: {}, spec: 's1' });
    await project.git('clean', '-fdq');
    expect((await project.giro(['status'])).stdout).toBe('no Specs yet: write one with giro init\n');
  });
});
