/** How a run is shown: the board on a terminal, one line per event, or NDJSON. The results are the same. */
import { printable } from '../platform/text.js';
import { readTail } from '../platform/files.js';
import { backlogLineOf, lineOf, type Level } from '../report/lines.js';
import { ndjsonOf } from '../report/ndjson.js';
import type { Event } from '../event.js';
import { stateOf, type BacklogState } from '../backlog-state.js';
import { emptyState, type RunState } from '../state.js';

/** The three ways to show a run. */
export type ShowKind = 'board' | 'lines' | 'json';

/** Something that shows a run. */
export interface Show {
  event(event: Event, state: BacklogState): void;
  /** Gives the terminal back; nothing is drawn afterwards. */
  close(): Promise<void>;
}

/** The streams and variables a view is chosen by. */
export interface Terminal {
  readonly stdout: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
  readonly env: NodeJS.ProcessEnv;
}

/** Chooses the view: the board only where a person can see it and type. */
export function chooseShow(
  terminal: Terminal,
  flags: { readonly json: boolean; readonly plain: boolean; readonly quiet: boolean },
  specs: 'one' | 'several',
): ShowKind {
  if (flags.json) return 'json';
  const { stdout, stdin, env } = terminal;
  const ci = env['CI'] !== undefined && !['', '0', 'false'].includes(env['CI']);
  const inAgent = env['CLAUDECODE'] !== undefined || env['AI_AGENT'] !== undefined;
  const off =
    flags.plain || flags.quiet || ci || inAgent || env['GIRO_TUI'] === '0' || (env['TERM'] ?? 'dumb') === 'dumb';
  // The board shows one Spec; of several it could only be wrong.
  return specs === 'one' && stdout.isTTY && stdin.isTTY && !off ? 'board' : 'lines';
}

/** Writes text to stdout; a reader that has gone away is no reason to stop. */
export function write(terminal: Terminal, text: string): void {
  if (terminal.stdout.destroyed || terminal.stdout.writableEnded) return;
  terminal.stdout.write(text);
}

/** How much is shown, and who hears that a person wants to stop. */
export interface ShowOptions {
  readonly level: Level;
  readonly onInterrupt: () => void;
}

/** Starts showing. */
export async function openShow(kind: ShowKind, terminal: Terminal, options: ShowOptions): Promise<Show> {
  switch (kind) {
    case 'json':
      return shown((event) => {
        write(terminal, `${ndjsonOf(event)}\n`);
      });
    case 'lines':
      return lineShow(terminal, options.level);
    case 'board':
      return openBoard(terminal, options);
  }
}

function lineShow(terminal: Terminal, level: Level): Show {
  return shown((event, state) => {
    const line = state.items.length > 0 ? backlogLineOf(event, state, level) : lineOf(event, theOne(state), level);
    if (line !== null) write(terminal, `${line}\n`);
  });
}

/** The Spec that was named. */
function theOne(state: BacklogState): RunState {
  const [spec] = state.specs.keys();
  return spec === undefined ? state.common : stateOf(state, spec);
}

function shown(event: Show['event']): Show {
  return { event, close: () => Promise.resolve() };
}

async function openBoard(terminal: Terminal, options: ShowOptions): Promise<Show> {
  const { startBoard } = await import('../tui/board.js');
  const listeners = new Set<(state: RunState) => void>();
  const lines = lineShow(terminal, options.level);
  let broken = false;
  const board = startBoard({
    stdout: terminal.stdout,
    stdin: terminal.stdin,
    stderr: process.stderr,
    initial: emptyState,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    readTail,
    now: () => Date.now(),
    tick: (listener) => {
      const timer = setInterval(listener, 1000);
      timer.unref();
      return () => {
        clearInterval(timer);
      };
    },
    unicode: isUnicode(terminal.env),
    color: (terminal.env['NO_COLOR'] ?? '') === '',
    onInterrupt: options.onInterrupt,
    onQuit: options.onInterrupt,
  });
  void board.failed.then(async (error) => {
    broken = true;
    await board.stop();
    write(terminal, `giro: the board failed: ${printable(error.message)}; the run goes on, shown in lines\n`);
  });
  return {
    event(event, state) {
      if (broken) lines.event(event, state);
      else for (const listener of listeners) listener(theOne(state));
    },
    close: () => board.stop(),
  };
}

/** Whether a terminal shows more than ASCII, as its locale says. */
export function isUnicode(env: NodeJS.ProcessEnv): boolean {
  const locale = env['LC_ALL'] ?? env['LC_CTYPE'] ?? env['LANG'] ?? '';
  return locale === '' || /utf-?8/i.test(locale);
}
