import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'vite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../rig/temp.js';
import type { TemporaryFolder } from '../rig/temp.js';
import { startTerminal } from '../rig/tmux.js';
import type { Terminal, TerminalRequest } from '../rig/tmux.js';

let folder: TemporaryFolder;
let program: string;
let log: string;

beforeAll(async () => {
  folder = await temporaryFolder();
  log = join(folder.path, 'attempt.log');
  program = join(folder.path, 'host.js');
  await writeFile(log, 'first line\n\u001b[31mred without end\n\u001b[2Jlast line');
  await build({
    configFile: false,
    logLevel: 'error',
    // The folder is outside the repository and has no packages beside it.
    ssr: { noExternal: true },
    build: {
      ssr: join(import.meta.dirname, 'host.ts'),
      outDir: folder.path,
      emptyOutDir: false,
      minify: false,
      target: 'node20',
    },
  });
});

afterAll(() => folder.remove());

function start(scenario: string, more: Partial<TerminalRequest> = {}): Promise<Terminal> {
  return startTerminal({ ...more, argv: [process.execPath, program, scenario, log] });
}

/** A frame of the run with nothing missing, nothing twice and nothing left of another one. */
function isWhole(screen: string, rows: number): boolean {
  const lines = screen.split('\n').slice(0, rows);
  const count = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length;
  return (
    /^Login for .* running +1:1\d:\d\d$/.test(lines[0] ?? '') &&
    /^1 of 7 done/.test(lines[1] ?? '') &&
    /^\? help/.test(lines[rows - 1] ?? '') &&
    [/^Login/, /^1 of 7/, /^❯ ✓ done/, /^── 01-store/, /^wave 1/, /^\? help/].every((row) => count(row) === 1)
  );
}

/** Everything a board may have changed about a terminal. */
async function expectGivenBack(board: Terminal): Promise<void> {
  expect(await board.modes()).toEqual({ alternateScreen: false, cursorVisible: true, wraps: true });
  const stty = await board.stty();
  expect(stty).toContain('echo');
  expect(stty).toContain('icanon');
  expect(stty).toContain('isig');
}

test('the board fills the screen, and its end leaves the screen as it was with the summary below', async () => {
  const board = await start('run');
  const screen = await board.waitFor('last line');
  expect(screen.split('\n').slice(0, 5)).toEqual([
    expect.stringMatching(/^Login for everyone \(auth\) +running {2}1:1\d:\d\d$/),
    '1 of 7 done, 1 needs a human, 2 running, 3 waiting        4 at once, tip eeeeeee',
    'wave 1  1 of 2 done',
    expect.stringMatching(/^❯ ✓ done {8}01-store/),
    expect.stringMatching(/^ {2}! needs-human 02-api/),
  ]);
  expect(screen).toContain('red without end\n');
  expect(await board.modes()).toEqual({ alternateScreen: true, cursorVisible: false, wraps: false });
  expect(await board.stty()).toContain('-echo');
  await board.keys('q');
  await board.waitFor('stop the run? y/n');
  await board.keys('y');
  expect(await board.exitCode()).toBe(2);
  expect(await board.capture()).toMatch(/^before\nleft by q\n\[exit 2\]\n+$/);
  await expectGivenBack(board);
});

test.each([{ CI: '' }, { CI: 'true' }, { CONTINUOUS_INTEGRATION: '1' }])(
  'with %j set it shows and goes on',
  async (env) => {
    const board = await start('run', { env });
    const first = await board.waitFor(/running +1:1\d:\d\d/);
    await board.waitFor((screen) => /1:1\d:\d\d/.test(screen) && screen.split('\n')[0] !== first.split('\n')[0]);
  },
);

test('Ctrl+C once shows that the run stops in good order, and once more ends it at once', async () => {
  const board = await start('run');
  await board.waitFor('last line');
  await board.keys('C-c');
  const screen = await board.waitFor('stopping: interrupted');
  expect(screen).toContain('Ctrl+C again ends everything at once');
  await board.keys('C-c');
  expect(await board.exitCode()).toBe(130);
  await expectGivenBack(board);
});

test('two quick presses of Ctrl+C are two', async () => {
  const board = await start('run');
  await board.waitFor('last line');
  await board.keys('C-c', 'C-c', 'C-c');
  expect(await board.exitCode()).toBe(130);
  await expectGivenBack(board);
});

test('a signal that stops the board gives the terminal back', async () => {
  const board = await start('run');
  await board.waitFor('last line');
  await board.signal('SIGTERM');
  expect(await board.exitCode()).toBe(143);
  await expectGivenBack(board);
});

test('a signal nobody handles and an exit without stop give the terminal back', async () => {
  const killed = await start('run');
  await killed.waitFor('last line');
  await killed.signal('SIGHUP');
  expect(await killed.exitCode()).toBe(129);
  await expectGivenBack(killed);
  const left = await start('exits');
  expect(await left.exitCode()).toBe(3);
  await expectGivenBack(left);
});

test('an exception while drawing is reported, and the terminal is given back', async () => {
  const board = await start('throws');
  expect(await board.exitCode()).toBe(1);
  expect(await board.capture()).toMatch(/^before\nthe board failed: a broken clock\n\[exit 1\]\n+$/);
  await expectGivenBack(board);
});

test('after every resize the frame is whole, and the end leaves nothing of it', async () => {
  const board = await start('run');
  await board.waitFor('last line');
  for (const [columns, rows] of [
    [100, 40],
    [40, 12],
    [120, 12],
    [60, 30],
  ] as const) {
    await board.resize(columns, rows);
    await board.waitFor((screen) => isWhole(screen, rows));
  }
  await board.keys('q');
  await board.waitFor('stop the run? y/n');
  await board.keys('y');
  await board.exitCode();
  expect((await board.capture()).trim()).toBe('before\nleft by q\n[exit 2]');
  expect((await board.scrollback()).trim()).toBe('');
});

test('what had scrolled off before the board is still there after it', async () => {
  const printing = 'seq 1 60; exec "$@"';
  const terminal = await startTerminal({ argv: ['sh', '-c', printing, 'sh', process.execPath, program, 'run', log] });
  await terminal.waitFor('last line');
  const scrolled = await terminal.scrollback();
  await terminal.keys('C-c', 'C-c');
  await terminal.exitCode();
  expect(scrolled).toMatch(/^before\n1\n2\n[^]*30\n/);
  expect(await terminal.scrollback()).toContain(scrolled);
});

test('what something else wrote over the board is gone with Ctrl+L', async () => {
  const board = await start('run');
  await board.waitFor('last line');
  await board.scribble('\u001b[3;1Hintruder');
  await board.waitFor('intruder');
  await board.keys('C-l');
  await board.waitFor((screen) => !screen.includes('intruder') && screen.includes('wave 1'));
});

test('what is printed to the console meanwhile waits until the board is gone', async () => {
  const board = await start('console');
  const screen = await board.waitFor('last line');
  expect(screen).not.toContain('printed');
  await board.keys('C-c', 'C-c');
  await board.exitCode();
  expect(await board.capture()).toMatch(/^before\nprinted while the board is up\nended at once\n/);
});

test('wide and long titles take one row each and shift no column', async () => {
  const board = await start('wide', { columns: 40, rows: 10 });
  expect(await board.waitFor('last line')).toMatchInlineSnapshot(`
    "⏳ 修复登录 (auth)      running  1:12:00
    0 of 5 done, 2 running, 3 ready
    wave 1  0 of 5 done
    ❯ ► working     01-glass #1  ⏳ 修复登录
      ◦ ready       02-zwj       👩\\u{200d}…
    ── 01-glass  ⏳ 修复登录 ───────────────
    first line
    red without end
    last line
    ? help  Up/Down move  Enter log  q quit
    "
  `);
  await board.resize(20, 10);
  expect(await board.waitFor((screen) => /^running[^]*wave 1[^]*last line[^]*\? help/.test(screen)))
    .toMatchInlineSnapshot(`
      "running  1:12:00
      0 of 5 done, 2 runn…
      wave 1  0 of 5 done
      ❯ ► working     01-…
        ◦ ready       02-…
      ── 01-glass  ⏳… ───
      first line
      red without end
      last line
      ? help  Up/Down mov…
      "
    `);
});
