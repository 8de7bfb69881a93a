import { expect, test } from 'vitest';
import { eventsOf, makeProject, unchangedBy } from '../rig/giro.js';

test('a Spec of three Issues ends with proof, one merge per Issue, and leaves the person alone', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' }, '03-c': {} },
    verify: 'test = "test -f README.md"',
  });
  const run = await unchangedBy(project, () => project.implement());
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  const landed = await project.git('log', '--first-parent', '--format=%s', 'giro/s1');
  expect(landed.split('\n').filter((line) => /^0\d-/.test(line))).toHaveLength(3);
  expect(await project.show('giro/s1', '02-b.txt')).toBe('by 02-b');
  expect(await project.issueFile('01-a')).toMatch(/state: done\n---\n# Issue 01-a[\s\S]*verdict: pass/);
  expect(eventsOf(run, 'run.finished')[0]).toMatchObject({ exit: 0, reason: 'proof', done: 3, total: 3 });
});

test('a gate that cannot pass ends with a hand raised, and status says why', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' }, '03-c': {} },
    verify: 'test = "! test -f 01-a.txt"',
  });
  const run = await unchangedBy(project, () => project.implement());
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'run.finished')[0]?.lines.at(-1)).toContain('01-a');
  const status = await project.giro(['status', 's1', '--json']);
  const issues = (JSON.parse(status.stdout) as { issues: { id: string; state: string; waitsFor?: string }[] }).issues;
  expect(issues).toMatchObject([
    { id: '01-a', state: 'needs-human' },
    { id: '02-b', state: 'ready', waitsFor: '01-a' },
    { id: '03-c', state: 'done' },
  ]);
});
