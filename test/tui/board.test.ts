import { Console } from 'node:console';
import { EventEmitter } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { reduce } from '../../src/state.js';
import type { RunState } from '../../src/state.js';
import { startBoard } from '../../src/tui/board.js';
import type { Board, BoardOptions } from '../../src/tui/board.js';
import { at, event, issue, mixedRun, oid, spec } from './demo.js';

const drawnRow = /\u001b\[(\d+);1H\u001b\[2K([^]*?)(?=\u001b\[\d+;1H|\u001b\[\?2026l)/g;

/** A terminal that understands the few codes the board writes; other ones stay visible in its rows. */
class FakeTerminal extends EventEmitter {
  readonly isTTY = true;
  readonly writable = true;
  columns = 80;
  rows = 24;
  writes: string[] = [];
  screen: string[] = [];
  bells = 0;

  write(text: string, callback?: () => void): boolean {
    if (text !== '') this.writes.push(text);
    this.bells += text === '\u0007' ? 1 : 0;
    if (text.includes('\u001b[2J')) this.screen = [];
    for (const [, row, content] of text.matchAll(drawnRow)) {
      this.screen[Number(row) - 1] = content!;
    }
    callback?.();
    this.emit('written');
    return true;
  }

  /** Waits until the screen shows a text; the board draws at most every tenth of a second. */
  async shows(text: string): Promise<string> {
    while (!this.screen.join('\n').includes(text)) await new Promise((resolve) => this.once('written', resolve));
    return this.screen.join('\n');
  }
}

class FakeKeyboard extends EventEmitter {
  readonly isTTY = true;
  raw = false;
  #text: string | null = null;

  press(text: string): void {
    this.#text = text;
    this.emit('readable');
  }

  read(): string | null {
    const text = this.#text;
    this.#text = null;
    return text;
  }

  setRawMode(raw: boolean): this {
    this.raw = raw;
    return this;
  }

  setEncoding(): void {}
  ref(): void {}
  unref(): void {}
}

/** A board on a fake terminal, with everything it is connected to in the test's hands. */
class Rig {
  readonly terminal = new FakeTerminal();
  readonly keyboard = new FakeKeyboard();
  readonly calls: string[] = [];
  readonly printed: string[] = [];
  state: RunState = mixedRun;
  log = 'line 1\nline 2';
  now = Date.parse(at(72));
  listeners = new Set<(state: RunState) => void>();
  ticks = new Set<() => void>();
  board: Board | null = null;

  start(more: Partial<BoardOptions> = {}): Board {
    this.board = startBoard({
      stdout: this.terminal as unknown as NodeJS.WriteStream,
      stdin: this.keyboard as unknown as NodeJS.ReadStream,
      stderr: { write: (text) => this.printed.push(text) },
      subscribe: (listener) => this.#add(this.listeners, listener),
      initial: this.state,
      readTail: () => Promise.resolve(this.log),
      now: () => this.now,
      tick: (listener) => this.#add(this.ticks, listener),
      unicode: true,
      color: false,
      onInterrupt: () => this.calls.push('interrupt'),
      onQuit: () => this.calls.push('quit'),
      ...more,
    });
    return this.board;
  }

  show(...events: readonly Parameters<typeof reduce>[1][]): void {
    this.state = events.reduce(reduce, this.state);
    for (const listener of this.listeners) listener(this.state);
  }

  tick(): void {
    for (const tick of this.ticks) tick();
  }

  #add<T>(set: Set<T>, item: T): () => void {
    set.add(item);
    return () => set.delete(item);
  }
}

let rig = new Rig();

// Ink makes a console of its own from it; the one that vitest puts in its place has none.
Object.assign(console, { Console });

afterEach(async () => {
  await rig.board?.stop();
  expect(rig.listeners.size + rig.ticks.size).toBe(0);
  expect(rig.terminal.listenerCount('resize') + rig.terminal.listenerCount('error')).toBe(0);
  expect(rig.keyboard.raw).toBe(false);
  rig = new Rig();
});

const finished = event(80, {
  type: 'run.finished',
  spec,
  exit: 2,
  reason: 'needs-human',
  tip: oid('e'),
  done: 1,
  total: 7,
  gitProcesses: 300,
  lines: ['next: giro status auth/02-api'],
});

describe('the board', () => {
  test('shows the run, follows it, and gives the terminal back', async () => {
    const board = rig.start();
    await rig.terminal.shows('4 at once, tip eeeeeee');
    await rig.terminal.shows('line 2');
    expect(rig.keyboard.raw).toBe(true);
    rig.show(event(73, { type: 'issue.integrated', issue: issue('04-session'), commit: oid('f'), attempts: 1 }));
    await rig.terminal.shows('2 of 7 done');
    await board.stop();
    expect(rig.terminal.writes.at(-1)).toBe('\u001b[0m\u001b[?7h\u001b[?25h\u001b[?1049l');
    await board.stop();
    expect(rig.terminal.writes.filter((text) => text.includes('?1049l'))).toHaveLength(1);
  });

  test('writes nothing while nothing changes, and one row while only time goes by', async () => {
    rig.show(finished);
    rig.start();
    await rig.terminal.shows('finished: needs-human, exit 2');
    await rig.terminal.shows('line 2');
    rig.terminal.writes = [];
    for (let second = 0; second < 5; second++) {
      rig.now += 1000;
      rig.tick();
    }
    // A key that moves nothing makes a frame for certain; it is the same frame.
    rig.keyboard.press('k');
    rig.keyboard.press('?');
    await rig.terminal.shows('show or hide this help');
    const [help] = rig.terminal.writes;
    expect(help).toContain('one row up');
    expect(rig.terminal.writes).toHaveLength(1);
  });

  test('one second later only the header is written', async () => {
    rig.start();
    await rig.terminal.shows('line 2');
    rig.terminal.writes = [];
    rig.now += 1000;
    rig.tick();
    await rig.terminal.shows('1:12:01');
    expect(rig.terminal.writes.join('').match(/;1H/g)).toHaveLength(1);
  });

  test('draws at most ten frames a second, the last one always', async () => {
    rig.start();
    await rig.terminal.shows('line 2');
    rig.terminal.writes = [];
    const start = performance.now();
    for (let attempt = 1; attempt <= 300; attempt++) {
      const reason = `try ${attempt}.`;
      rig.show(event(73, { type: 'issue.retrying', issue: issue('04-session'), reason, inMs: 1, failures: 1 }));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await rig.terminal.shows('try 300.');
    expect(rig.terminal.writes.length).toBeLessThanOrEqual((performance.now() - start) / 100 + 2);
  });

  test('rings once when one more Issue needs a human, not for those that did before', async () => {
    rig.start();
    await rig.terminal.shows('line 2');
    expect(rig.terminal.bells).toBe(0);
    rig.show(
      event(73, {
        type: 'issue.escalated',
        issue: issue('04-session'),
        cause: 'blocked',
        question: 'Which cookie?',
        attempts: 1,
        worktree: null,
      }),
    );
    await rig.terminal.shows('2 need a human');
    expect(rig.terminal.bells).toBe(1);
  });

  test('is drawn whole for the new size after a resize', async () => {
    rig.start();
    await rig.terminal.shows('line 2');
    rig.terminal.columns = 40;
    rig.terminal.rows = 12;
    rig.terminal.emit('resize');
    await rig.terminal.shows('Login for everyone (a…  running  1:12:00');
    expect(rig.terminal.screen.length).toBeLessThanOrEqual(12);
  });
});

describe('keys', () => {
  test('move the selection and show its log', async () => {
    rig.start({ readTail: (path) => Promise.resolve(`output of ${path}`) });
    await rig.terminal.shows('01-store/1.log');
    rig.keyboard.press('j');
    await rig.terminal.shows('output of .giro/runs/r1/02-api/3.log');
    await rig.terminal.shows('giro status auth/02-api');
    rig.keyboard.press('\u001b[B\u001b[B');
    await rig.terminal.shows('output of gates/04-session.log');
  });

  test('scroll the log, which then stands still until it follows again', async () => {
    rig.log = Array.from({ length: 100 }, (_, index) => `line ${index}.`).join('\n');
    rig.keyboard.press('');
    rig.start();
    await rig.terminal.shows('line 99.');
    rig.show(
      event(73, {
        type: 'attempt.started',
        issue: issue('01-store'),
        attempt: 2,
        driver: 'x',
        slot: 1,
        base: oid('a'),
        worktree: '/w',
        log: 'x.log',
      }),
    );
    await rig.terminal.shows('► working     01-store');
    rig.keyboard.press('\r');
    await rig.terminal.shows('log: x.log');
    rig.keyboard.press('\u001b[5~');
    const before = (await rig.terminal.shows('paused, G follows')).split('\n').slice(2);
    rig.log += '\nline 100.';
    rig.tick();
    rig.now += 1000;
    rig.tick();
    await rig.terminal.shows('1:12:01');
    expect(rig.terminal.screen.slice(2)).toEqual(before);
    rig.keyboard.press('G');
    await rig.terminal.shows('line 99.');
    rig.tick();
    await rig.terminal.shows('line 100.');
  });

  test('stop the run only after a question', async () => {
    rig.start();
    await rig.terminal.shows('line 2');
    rig.keyboard.press('q');
    await rig.terminal.shows('stop the run? y/n');
    rig.keyboard.press('n');
    await rig.terminal.shows('? help');
    expect(rig.calls).toEqual([]);
    rig.keyboard.press('q');
    await rig.terminal.shows('stop the run? y/n');
    rig.keyboard.press('y');
    expect(rig.calls).toEqual(['quit']);
  });

  test('interrupt each time Ctrl+C is pressed', async () => {
    rig.start();
    await rig.terminal.shows('line 2');
    rig.keyboard.press('\u0003');
    rig.keyboard.press('\u0003\u0003');
    expect(rig.calls).toEqual(['interrupt', 'interrupt', 'interrupt']);
  });

  test('leave at once when the run has finished', async () => {
    rig.show(finished);
    rig.start();
    await rig.terminal.shows('finished');
    rig.keyboard.press('q');
    expect(rig.calls).toEqual(['quit']);
  });
});

describe('when something breaks', () => {
  test('an exception while drawing ends the board, not the run', async () => {
    const board = rig.start({
      now: () => {
        throw new Error('a broken clock');
      },
    });
    expect((await board.failed).message).toBe('a broken clock');
    expect(rig.terminal.writes.at(-1)).toContain('\u001b[?1049l');
  });

  test('an exception in a callback ends the board, and no event of the engine sees one', async () => {
    const board = rig.start({
      onInterrupt: () => {
        throw new Error('a broken handler');
      },
    });
    await rig.terminal.shows('line 2');
    rig.keyboard.press('\u0003');
    expect((await board.failed).message).toBe('a broken handler');
    expect(() => rig.show(finished)).not.toThrow();
  });

  test('a terminal that went away is reported and not written to', async () => {
    const board = rig.start();
    await rig.terminal.shows('line 2');
    rig.terminal.writes = [];
    rig.terminal.emit('error', new Error('EIO'));
    expect((await board.failed).message).toBe('EIO');
    expect(rig.terminal.writes).toEqual([]);
  });

  test('what is printed to the console meanwhile comes out at the end, on stderr', async () => {
    const board = rig.start();
    await rig.terminal.shows('line 2');
    // eslint-disable-next-line no-console -- as a library would
    console.warn('careless');
    expect(rig.terminal.writes.join('')).not.toContain('careless');
    await board.stop();
    expect(rig.printed.join('')).toBe('careless\n');
  });

  test('without keys it still shows the run', async () => {
    rig.start({ stdin: Object.assign(new FakeKeyboard(), { isTTY: false }) as unknown as NodeJS.ReadStream });
    await rig.terminal.shows('4 at once');
  });
});
