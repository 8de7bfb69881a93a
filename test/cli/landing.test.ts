import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject } from '../rig/giro.js';

test('a gate that ran on the Issue’s own code and cannot run on the merged one is the merge’s doing, and the worker’s to repair', async () => {
  const ok = '#!/bin/sh\nexit 0\n';
  const project = await makeProject({
    files: { 'README.md': '# T\n' },
    issues: { '01-a': {}, '02-b': { frontmatter: 'touches: [check2]\ntests: [check2]' } },
    agent: [
      'case "$GIRO_ISSUE-$GIRO_ATTEMPT" in',
      '01-a-*) echo new > new ;;',
      '02-b-1) while [ ! -f "$HOME/go" ]; do sleep 0.02; done; rm check2; echo b > b ;;',
      '02-b-*) cp check check2; echo more > b ;;',
      'esac',
    ].join('\n'),
    verify: 'test = "if [ -f new ]; then ./check2; else ./check; fi"',
  });
  for (const name of ['check', 'check2']) await project.write(name, ok, 0o755);
  await project.git('add', 'check', 'check2');
  await project.git('commit', '-qm', 'checks');
  const started = project.start(['implement', 's1', '--json', '-c', '2']);
  await started.event('issue.integrated', (event) => event.issue === '01-a');
  await writeFile(join(project.home, 'go'), '');
  const run = await started.ended;
  expect(eventsOf(run, 'candidate.rejected')[0]?.findings[0]?.message).toContain('cannot run here');
  expect(eventsOf(run, 'issue.escalated')).toEqual([]);
  expect(run.code).toBe(0);
});

test('what is held gives its slots and, when nothing else moves, its leases to the others: each is tried, then the run ends', async () => {
  const project = await makeProject({
    issues: {
      '01-a': { frontmatter: 'touches: ["x/**"]' },
      '02-b': { frontmatter: 'touches: ["x/y/**"]' },
      '03-c': {},
      '04-d': { frontmatter: 'depends-on: [1]' },
    },
    agent: 'while [ ! -f "$HOME/go" ]; do sleep 0.02; done; echo x > "$GIRO_ISSUE.txt"\n',
  });
  const started = project.start(['implement', 's1', '--json', '-c', '1']);
  await started.event('attempt.started');
  const mine = join(project.folder, 'mine');
  await project.git('worktree', 'add', '-q', mine, 'giro/s1');
  await writeFile(join(project.home, 'go'), '');
  const run = await started.ended;
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'attempt.started').map((event) => event.issue)).toEqual(['01-a', '03-c', '02-b']);
  await project.git('-C', mine, 'switch', '-q', '--detach');
  const again = await project.implement();
  expect(again.code).toBe(0);
  expect(eventsOf(again, 'attempt.started').map((event) => event.issue)).toEqual(['04-d']);
});

test('a branch that a person checks out meanwhile is not moved: everything else ends, and the next run only lands', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: 'echo "$GIRO_ATTEMPT" >> "$HOME/ran"; while [ ! -f "$HOME/go" ]; do sleep 0.02; done; echo x > a.txt\n',
  });
  const started = project.start(['implement', 's1', '--json']);
  await started.event('attempt.started');
  const mine = join(project.folder, 'mine');
  await project.git('worktree', 'add', '-q', mine, 'giro/s1');
  const tip = await project.git('rev-parse', 'giro/s1');
  await writeFile(join(project.home, 'go'), '');
  const run = await started.ended;
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'lane.held').at(-1)?.message).toContain(`git -C ${mine} switch --detach`);
  expect(eventsOf(run, 'run.finished')[0]?.lines.at(-1)).toContain('giro/s1 is checked out in');
  expect(await project.git('rev-parse', 'giro/s1')).toBe(tip);
  await project.git('-C', mine, 'switch', '-q', '--detach');
  const again = await project.implement();
  expect(again.code).toBe(0);
  expect(eventsOf(again, 'attempt.started')).toEqual([]);
  expect(await project.show('giro/s1', 'a.txt')).toBe('x');
});
