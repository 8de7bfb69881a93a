import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { makeProject, type Project } from '../rig/giro.js';
import { startTerminal, type Terminal } from '../rig/tmux.js';

const program = resolve(import.meta.dirname, '../../bin/giro.js');
let terminal: Terminal | null = null;

afterEach(async () => {
  await terminal?.kill();
  terminal = null;
});

const issues = { '01-first': {}, '02-second': {}, '03-third': { frontmatter: 'depends-on: [01, 02]' } };
const patient = 'echo "says $GIRO_ISSUE"\nwhile [ ! -f "$HOME/go" ]; do sleep 0.05; done\necho x > "$GIRO_ISSUE.txt"\n';

async function onTerminal(
  project: Project,
  more: {
    readonly env?: Readonly<Record<string, string>>;
    readonly args?: readonly string[];
    readonly columns?: number;
    readonly rows?: number;
  } = {},
): Promise<Terminal> {
  terminal = await startTerminal({
    argv: [process.execPath, program, 'implement', 's1', ...(more.args ?? [])],
    cwd: project.path,
    env: { ...project.environment, TERM: 'xterm-256color', PATH: process.env['PATH'] ?? '', ...more.env },
    ...(more.columns === undefined ? {} : { columns: more.columns }),
    ...(more.rows === undefined ? {} : { rows: more.rows }),
  });
  return terminal;
}

/** The terminal as a shell needs it. */
async function expectGivenBack(board: Terminal): Promise<void> {
  const [line, modes] = [await board.stty(), await board.modes()];
  expect(line).toContain('echo');
  expect(line).toContain('icanon');
  expect(modes).toMatchObject({ alternateScreen: false, cursorVisible: true });
}

test('the board shows a run at 80x24, and its end stands on the main screen', async () => {
  const project = await makeProject({ issues, agent: patient });
  const board = await onTerminal(project);
  const screen = await board.waitFor((text) => /working +01-first/.test(text) && text.includes('says 01-first'));
  const lines = screen.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(24);
  expect(lines.every((line) => line.length <= 80)).toBe(true);
  expect(screen).toMatch(/A test Spec \(s1\)/);
  expect(screen).toMatch(/wave 1/);
  expect(screen).toMatch(/waiting +03-third .*waits for 01-first/);
  expect(screen).toContain('? help');
  await writeFile(join(project.home, 'go'), '');
  expect(await board.exitCode()).toBe(0);
  expect(await board.capture()).toMatch(/proof: 3 of 3 Issues integrated/);
  await expectGivenBack(board);
});

test.each(['', 'true'])('C083 with CI=%j in a terminal there is visible progress at once', async (value) => {
  const project = await makeProject({ issues, agent: patient });
  const board = await onTerminal(project, { env: { CI: value } });
  await board.waitFor(/01-first/);
  await writeFile(join(project.home, 'go'), '');
  expect(await board.exitCode()).toBe(0);
  await expectGivenBack(board);
});

test('C033, C055 on a terminal neither an agent nor a gate gets it: both read to the end of nothing and go on', async () => {
  const watcher =
    'if [ -t 0 ] || [ -t 1 ] || [ -t 2 ] || [ -z "$CI" ]; then sleep 600; fi; read answer; test -z "$answer"';
  const project = await makeProject({
    issues: { '01-first': {} },
    agent: 'if [ -t 0 ] || [ -t 1 ] || [ -t 2 ]; then sleep 600; fi\ncat > prompt.txt\n',
    verify: `test = ${JSON.stringify(watcher)}`,
  });
  const board = await onTerminal(project);
  expect(await board.exitCode()).toBe(0);
  expect(await project.show('giro/s1', 'prompt.txt')).toContain('# Issue 01-first');
});

test('C088 with one red Issue of four the board ends with exit 2 too, and its last line says what it asks', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {}, '03-c': {}, '04-d': {} },
    budget: 'attempts = 1',
    verify: 'test = "! test -f 02-b.txt"',
  });
  const board = await onTerminal(project, { columns: 160 });
  expect(await board.exitCode()).toBe(2);
  const lines = (await board.capture()).trimEnd().split('\n');
  expect(lines.find((line) => line.startsWith('needs a human: 02-b: '))).toBeDefined();
  await expectGivenBack(board);
});

test('C085 Ctrl+C once stops in order: visible, saved, terminal and exit as they should be', async () => {
  const project = await makeProject({ issues, agent: patient });
  const board = await onTerminal(project);
  await board.waitFor(/working +02-second/);
  await board.keys('C-c');
  expect(await board.exitCode()).toBe(130);
  expect(await board.capture()).toMatch(/stopped: SIGINT; go on with: giro implement s1/);
  await expectGivenBack(board);
  expect(await project.issueFile('01-first', 'giro-issue/s1/01-first')).toContain('verdict: stopped');
  await writeFile(join(project.home, 'go'), '');
  expect((await project.implement()).code).toBe(0);
});

test('C085 Ctrl+C twice ends at once, also an agent that ignores signals', async () => {
  const project = await makeProject({
    issues: { '01-first': {} },
    agent: `trap "" TERM INT\necho $$ > "$HOME/pid"\n${patient}`,
    toml: '',
  });
  await project.write(
    'giro.toml',
    (await readFile(join(project.path, 'giro.toml'), 'utf8')).replace('grace = "1s"', 'grace = "60s"'),
  );
  const board = await onTerminal(project);
  await board.waitFor(/says 01-first/);
  await board.keys('C-c');
  await board.waitFor(/stopping/);
  await board.keys('C-c');
  expect(await board.exitCode()).toBe(130);
  expect(await board.capture()).toMatch(/^ended at once; .*go on with: giro implement s1$/m);
  await expectGivenBack(board);
  const pid = (await readFile(join(project.home, 'pid'), 'utf8')).trim();
  const cmdline = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  expect(cmdline).not.toContain('agent.sh');
});

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('C085 %s gives the terminal back', async (signal) => {
  const project = await makeProject({ issues, agent: patient });
  const board = await onTerminal(project);
  await board.waitFor(/working +01-first/);
  await board.signal(signal);
  expect(await board.exitCode()).toBe({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[signal]);
  await expectGivenBack(board);
});

test('C091 the terminal is closed: agents and their children end, state is saved, and the same command goes on', async () => {
  const beat = '(while true; do date +%s%N > "$HOME/beat"; sleep 0.05; done) &\n';
  const project = await makeProject({
    issues: { '01-first': {} },
    agent: `echo partial > part.txt\n[ -f "$HOME/go" ] || { ${beat}sleep 60; }\necho x > x.txt\n`,
  });
  const board = await onTerminal(project);
  const beats = async (): Promise<string> => readFile(join(project.home, 'beat'), 'utf8').catch(() => '');
  while ((await beats()) === '') await pause(10);
  const giro = await board.pid();
  await board.kill();
  for (let wait = 0; wait < 400 && (await isRunning(giro)); wait += 1) await pause(50);
  expect(await isRunning(giro)).toBe(false);
  const last = await beats();
  await writeFile(join(project.home, 'go'), '');
  const run = await project.implement();
  expect([run.code, await beats()]).toEqual([0, last]);
  expect(await project.issueFile('01-first')).toContain('verdict: stopped');
  expect(await project.show('giro/s1', 'part.txt')).toBe('partial');
});

async function isRunning(pid: number): Promise<boolean> {
  return !/^State:\s*[ZX]|^$/m.test((await readFile(`/proc/${String(pid)}/status`, 'utf8').catch(() => '')).trim());
}

test('giro stop ends a run on the board: terminal given back, last lines below, exit 2', async () => {
  const project = await makeProject({ issues, agent: patient });
  const board = await onTerminal(project, { columns: 120 });
  await board.waitFor(/working +02-second/);
  const stop = await project.giro(['stop', 's1']);
  expect([stop.code, stop.stderr]).toEqual([0, '']);
  expect(await board.exitCode()).toBe(2);
  const screen = await board.capture();
  expect(screen).toContain('0 of 3 Issues integrated');
  expect(screen).toMatch(/^stopped: giro stop ended it; go on with: giro implement s1\n\[exit 2\]\n/m);
  await expectGivenBack(board);
});

test('while giro stop waits for an agent the board says so, and Ctrl+C does at once what it says', async () => {
  const project = await makeProject({ issues: { '01-first': {} }, agent: `trap "" TERM INT\n${patient}` });
  const policy = await readFile(join(project.path, 'giro.toml'), 'utf8');
  await project.write('giro.toml', policy.replace('grace = "1s"', 'grace = "60s"'));
  const board = await onTerminal(project);
  await board.waitFor(/says 01-first/);
  expect((await project.giro(['stop', '--wait', '500ms'])).code).toBe(1);
  const screen = await board.waitFor('stopping: giro stop ended it');
  expect(screen).toContain('Ctrl+C again ends everything at once');
  await board.keys('C-c');
  expect(await board.exitCode()).toBe(130);
  await expectGivenBack(board);
});

test('the results are the same on the board, in lines and as NDJSON', async () => {
  const trees: string[] = [];
  for (const args of [[], ['--plain'], ['--json']]) {
    const project = await makeProject({ issues });
    const board = await onTerminal(project, { args });
    expect(await board.exitCode()).toBe(0);
    trees.push(
      await project
        .git('log', '--first-parent', '--format=%s', 'giro/s1', '--', '.', ':!nothing')
        .then((log) => log.split('\n').sort().join('\n')),
    );
    await board.kill();
  }
  expect(new Set(trees.map((log) => log.replaceAll(/on [0-9a-f]{7}/g, ''))).size).toBe(1);
});
