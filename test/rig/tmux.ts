/** A real terminal for tests: the program runs in a tmux server of its own, without the settings of this machine. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './temp.js';

const run = promisify(execFile);

export interface TerminalRequest {
  readonly argv: readonly [string, ...string[]];
  readonly columns?: number;
  readonly rows?: number;
  /** On top of PATH, HOME, a UTF-8 locale and TERM; nothing else of this process is seen. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A terminal with a program on it. */
export interface Terminal {
  /** What is on the screen now, line by line, without trailing spaces. */
  capture(): Promise<string>;
  /** Presses keys as tmux names them (`Down`, `C-c`); anything else is typed. */
  keys(...keys: readonly string[]): Promise<void>;
  /** Waits until the screen is as wanted; fails with the screen as it is. */
  waitFor(wanted: string | RegExp | ((screen: string) => boolean)): Promise<string>;
  /** Waits for the program to end; its exit code, 128 and more for a signal. */
  exitCode(): Promise<number>;
  resize(columns: number, rows: number): Promise<void>;
  /** The modes of the terminal line, such as `-echo`; the shell's own when the program has ended. */
  stty(): Promise<readonly string[]>;
  /** What the terminal says of itself. */
  modes(): Promise<{ readonly alternateScreen: boolean; readonly cursorVisible: boolean; readonly wraps: boolean }>;
  /** Lines that have scrolled off the top. */
  scrollback(): Promise<string>;
  /** Writes straight to the terminal, as a program does that should not. */
  scribble(text: string): Promise<void>;
  /** The process of the program itself. */
  pid(): Promise<number>;
  /** Sends a signal to the program alone. */
  signal(name: NodeJS.Signals): Promise<void>;
  /** Ends the server and all in it; done by itself after the test. */
  kill(): Promise<void>;
}

// The shell stays, so that the terminal can be looked at after the program has ended; not longer than any test takes.
const script = `
stty sane
printf 'before\\n'
pidfile=$1; shift
sh -c 'echo $$ > "$0"; exec "$@"' "$pidfile" "$@"
printf '[exit %s]\\n' "$?"
exec sleep 300`;
const pauseMs = 40;
const longestWaitMs = 20_000;

let started = 0;

/** Starts a program on a terminal of a fixed size, for the running test. */
export async function startTerminal(request: TerminalRequest): Promise<Terminal> {
  const { path: home } = await temporaryFolder();
  const socket = `giro-test-${process.pid}-${++started}`;
  const { columns = 80, rows = 24, cwd = home } = request;
  const env = {
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    HOME: home,
    TMUX_TMPDIR: home,
    LC_ALL: 'C.UTF-8',
    TERM: 'xterm-256color',
    ...request.env,
  };
  const tmux = async (...args: readonly string[]): Promise<string> => {
    const { stdout } = await run('tmux', ['-u', '-f', '/dev/null', '-L', socket, ...args], {
      env,
      cwd,
      timeout: 10_000,
    });
    return stdout;
  };
  const pidFile = join(home, 'pid');
  const size = ['-x', String(columns), '-y', String(rows)];
  await tmux('new-session', '-d', ...size, '-s', 'test', 'sh', '-c', script, 'sh', pidFile, ...request.argv);
  const ask = async (format: string): Promise<string> =>
    (await tmux('display-message', '-p', '-t', 'test', format)).trim();
  const tty = await ask('#{pane_tty}');
  const capture = (): Promise<string> => tmux('capture-pane', '-p', '-t', 'test');

  const waitFor: Terminal['waitFor'] = async (wanted) => {
    for (let waited = 0; ; waited += pauseMs) {
      const screen = await capture();
      if (matches(screen, wanted)) return screen;
      if (waited > longestWaitMs) throw new Error(`the screen never showed ${String(wanted)}:\n${screen}`);
      await delay(pauseMs);
    }
  };

  const kill = async (): Promise<void> => {
    // Nothing to end is what was wanted.
    await tmux('kill-server').catch(() => undefined);
  };
  onTestFinished(kill);
  const pid = async (): Promise<number> => Number(await readFile(pidFile, 'utf8'));

  return {
    capture,
    waitFor,
    keys: async (...keys) => {
      await tmux('send-keys', '-t', 'test', ...keys);
    },
    exitCode: async () => Number(/\[exit (\d+)\]/.exec(await waitFor(/\[exit \d+\]/))?.[1]),
    resize: async (width, height) => {
      await tmux('resize-window', '-t', 'test', '-x', String(width), '-y', String(height));
    },
    stty: async () => (await run('sh', ['-c', 'stty -a < "$1"', 'sh', tty])).stdout.split(/[\s;]+/),
    modes: async () => {
      const flags = await ask('#{alternate_on} #{cursor_flag} #{wrap_flag}');
      const [alternateScreen, cursorVisible, wraps] = flags.split(' ').map((flag) => flag === '1');
      return { alternateScreen: alternateScreen!, cursorVisible: cursorVisible!, wraps: wraps! };
    },
    scrollback: async () => {
      // Without any, tmux would answer with the first line of the screen.
      if ((await ask('#{history_size}')) === '0') return '';
      return tmux('capture-pane', '-p', '-t', 'test', '-S', '-', '-E', '-1');
    },
    scribble: (text) => writeFile(tty, text),
    pid,
    signal: async (name) => {
      process.kill(await pid(), name);
    },
    kill,
  };
}

function matches(screen: string, wanted: Parameters<Terminal['waitFor']>[0]): boolean {
  if (typeof wanted === 'string') return screen.includes(wanted);
  return typeof wanted === 'function' ? wanted(screen) : wanted.test(screen);
}
