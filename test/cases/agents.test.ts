import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject } from '../rig/giro.js';
import { scaled } from '../rig/scale.js';

test("C033 an agent that reads its input to the end goes on at once, also when giro's own stdin stays open", async () => {
  const readsAll = { issues: { '01-a': {} }, agent: 'cat > prompt.txt\n' };
  const nothing = await makeProject(readsAll);
  expect((await nothing.implement()).code).toBe(0);
  const piped = await makeProject(readsAll);
  const run = await piped.giro(['implement', 's1', '--json'], { stdin: 'not for the agent' });
  expect(run.code).toBe(0);
  expect(await piped.show('giro/s1', 'prompt.txt')).not.toContain('not for the agent');
  // Under a parent that never closes it; on a terminal: terminal.pty.test.ts.
  const held = await makeProject(readsAll);
  const child = spawn(
    process.execPath,
    [resolve(import.meta.dirname, '../../bin/giro.js'), 'implement', 's1', '--json'],
    { cwd: held.path, env: held.environment, stdio: ['pipe', 'ignore', 'inherit'] },
  );
  expect(await new Promise((done) => child.on('exit', done))).toBe(0);
  expect(await held.show('giro/s1', 'prompt.txt')).toContain('# Issue 01-a');
});

test.each(['---', '- [ ] do it', '--help', '@file', '$(touch marker)', '`touch marker`'])(
  'C034 a body that starts with %j reaches the agent exactly',
  async (start) => {
    const body = `${start}\nand the rest`;
    const project = await makeProject({ issues: {}, agent: 'cat > "$HOME/prompt"\necho "$#" > args.txt\n' });
    await project.write('docs/specs/s1/issues/01-a.md', `---\nstate: ready\n---\n${body}\n`);
    const run = await project.implement();
    expect(run.code).toBe(0);
    expect(await readFile(join(project.home, 'prompt'), 'utf8')).toContain(`\n${body}\n`);
    expect(await project.show('giro/s1', 'args.txt')).toBe('0');
    expect(await project.show('giro/s1', 'marker')).toBeNull();
  },
);

test('C035 an agent that ends without reading a large prompt fails alone', async () => {
  const project = await makeProject({
    issues: { '01-a': { body: 'x'.repeat(scaled(900_000, 900_000)) }, '02-b': {}, '03-c': {}, '04-d': {} },
    budget: 'attempts = 1',
    agent: 'if [ "$GIRO_ISSUE" = 01-a ]; then exit 7; fi\necho x > "$GIRO_ISSUE.txt"\n',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(run.stderr).toBe('');
  expect(eventsOf(run, 'attempt.finished').find((event) => event.issue === '01-a')?.reason).toBe('agent exited 7');
  expect(eventsOf(run, 'issue.integrated')).toHaveLength(3);
});

test('C036 an agent that reports its result and never exits is ended, and its work counts', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {} },
    agent: 'echo x > "$GIRO_ISSUE.txt"\nif [ "$GIRO_ISSUE" = 01-a ]; then echo \'{"status":"done"}\'; sleep 600; fi\n',
  });
  const run = await project.implement('-c', '1');
  expect(run.code).toBe(0);
  expect(await project.show('giro/s1', '01-a.txt')).toBe('x');
});

test('C037 an agent that stalls is ended at the limit, named so, and the rest goes on', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {} },
    budget: `attempts = 2\nattempt-timeout = "${scaled('1s', '20s')}"\nno-progress = 5`,
    agent: 'if [ "$GIRO_ISSUE" = 01-a ]; then echo one; echo two; sleep 600; fi\necho x > "$GIRO_ISSUE.txt"\n',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  const ended = eventsOf(run, 'attempt.finished').filter((event) => event.issue === '01-a');
  expect(ended.map((event) => event.ended.kind)).toEqual(['timed-out', 'timed-out']);
  expect(ended[0]?.reason).toContain('timed out');
  expect(eventsOf(run, 'gate.started').filter((event) => event.issue === '01-a')).toEqual([]);
  expect(eventsOf(run, 'issue.integrated').map((event) => event.issue)).toEqual(['02-b']);
});

test('C041 a clean exit with nothing done is not done', async () => {
  const project = await makeProject({ issues: { '01-a': {} }, agent: 'echo "I have a plan"\n' });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'attempt.started').length).toBe(2);
  expect(await project.issueFile('01-a')).toContain('nothing was changed');
  expect(eventsOf(run, 'issue.integrated')).toEqual([]);
});

test('C042 work that was left uncommitted is gated and merged', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: 'echo one > one.txt\nmkdir -p sub\necho two > sub/two.txt\necho more >> README.md\n',
    verify: 'test = "test -f one.txt && test -f sub/two.txt && grep -q more README.md"',
  });
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect((await project.git('diff', '--name-only', 'main', 'giro/s1', '--', '.', ':!docs')).split('\n')).toEqual([
    'README.md',
    'one.txt',
    'sub/two.txt',
  ]);
});

test('C046 words change nothing: the state follows from exit, commits and gates', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    agent:
      'cat\necho "implementation complete" > half.txt\necho "I will not output DONE"\necho "DONE: all tests pass, state: done"\n',
    verify: 'test = "test -f whole.txt"',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(await project.issueFile('01-a')).toMatch(/^---\nstate: needs-human\n/);
});
