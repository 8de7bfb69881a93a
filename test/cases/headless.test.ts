import { readFile, writeFile } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject } from '../rig/giro.js';

test.each([
  ['stdin is /dev/null', {}],
  ['TERM=dumb', { TERM: 'dumb' }],
  ['no TERM', { TERM: '' }],
  ['CI', { CI: 'true', TERM: 'xterm' }],
])('C082 without a terminal (%s) there are plain lines and the same exit code', async (_name, env) => {
  const project = await makeProject({ issues: { '01-a': {} } });
  const run = await project.giro(['implement', 's1'], { env });
  expect(run.code).toBe(0);
  expect(run.stderr).toBe('');
  expect(run.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
  expect(run.stdout).toMatch(/01-a +integrated/);
  expect(run.stdout.trimEnd().split('\n').at(-1)).toMatch(/^proof: 1 of 1 Issues integrated/);
});

const oneRed = {
  issues: { '01-a': {}, '02-b': {}, '03-c': {}, '04-d': {} },
  budget: 'attempts = 1',
  verify: 'test = "! test -f 02-b.txt"',
};

test.each([[['--json']], [['--plain']], [['--quiet']]])(
  'C088 one red Issue of four is exit 2, with %j',
  async (flags) => {
    const project = await makeProject(oneRed);
    const run = await project.giro(['implement', 's1', ...flags]);
    expect(run.code).toBe(2);
    const last = flags.includes('--json')
      ? eventsOf(run, 'run.finished')[0]?.lines.at(-1)
      : run.stdout.trimEnd().split('\n').at(-1);
    expect(last).toContain('02-b');
    expect(last).toContain('needs a human');
  },
);

test('C088 with its output closed it is exit 2 too', async () => {
  const project = await makeProject(oneRed);
  const child = spawn(
    process.execPath,
    [resolve(import.meta.dirname, '../../bin/giro.js'), 'implement', 's1', '--json'],
    { cwd: project.path, env: project.environment, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  child.stdout.once('data', () => child.stdout.destroy());
  const code = await new Promise((done) => child.on('exit', done));
  expect(code).toBe(2);
  expect(await project.issueFile('04-d')).toContain('state: done');
});

test('C089 nothing to do is not proof', async () => {
  const project = await makeProject({ issues: {} });
  await project.write('docs/specs/empty/notes.txt', 'no SPEC.md here');
  for (const target of ['empty', 'nowhere', 's1/07', 'docs/specs/s1/issues/01-x.md']) {
    const run = await project.giro(['implement', target]);
    expect([target, run.code]).toEqual([target, 1]);
    expect(run.stderr).not.toContain('bug');
  }
  // One with a SPEC.md is planned; a planner that plans nothing is no proof either.
  expect((await project.giro(['implement', 's1'])).code).toBe(2);
});

test('C089 a Spec whose Issues are all blocked is exit 2', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    budget: 'attempts = 1',
    verify: 'test = "false"',
  });
  expect((await project.implement()).code).toBe(2);
  await writeFile(join(project.home, 'again'), '');
  const again = await project.implement();
  expect(again.code).toBe(2);
  expect(eventsOf(again, 'run.finished')[0]?.lines.join('\n')).toContain('02-b waits for 01-a, which needs a human');
});

test.each(['SIGTERM', 'SIGINT'] as const)(
  'C090 %s to giro alone ends its agents and their children; the same command goes on',
  async (signal) => {
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': {}, '03-c': {} },
      agent: [
        'echo partial > "$GIRO_ISSUE.part"',
        'if [ ! -f "$HOME/go" ]; then (while true; do date +%s%N > "$HOME/beat-$GIRO_ISSUE"; sleep 0.05; done) & sleep 60; fi',
        'echo x > "$GIRO_ISSUE.txt"',
      ].join('\n'),
    });
    const running = project.start(['implement', 's1', '--json', '-c', '3']);
    for (const issue of ['01-a', '02-b', '03-c'])
      await running.event('attempt.started', (event) => event.issue === issue);
    running.kill(signal);
    const stopped = await running.ended;
    expect(stopped.signal).toBe(signal);
    expect(eventsOf(stopped, 'run.stopping')).toHaveLength(1);
    const beats = (): Promise<readonly string[]> =>
      Promise.all(
        ['01-a', '02-b', '03-c'].map((issue) => readFile(join(project.home, `beat-${issue}`), 'utf8').catch(() => '')),
      );
    const [before] = [await beats()];
    await writeFile(join(project.home, 'go'), '');
    const run = await project.implement('-c', '3');
    expect(await beats()).toEqual(before);
    expect(run.code).toBe(0);
    // An orderly stop gives the attempt back, and keeps what was done.
    expect(await project.issueFile('01-a')).toContain('verdict: stopped');
    expect(await project.show('giro/s1', '01-a.part')).toBe('partial');
  },
);
