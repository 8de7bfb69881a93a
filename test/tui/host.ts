/** The smallest program around the board, for the tests on a real terminal: bundled by them and run in tmux. */
import { readFileSync } from 'node:fs';
import { startBoard } from '../../src/tui/board.js';
import { reduce } from '../../src/state.js';
import type { RunState } from '../../src/state.js';
import { event, mixedRun, wideRun } from './demo.js';

const [scenario = 'run', log = ''] = process.argv.slice(2);

let state: RunState = scenario === 'wide' ? wideRun : mixedRun;
let listener: (state: RunState) => void = () => {};
let interrupts = 0;
let ticks = 0;

const show = (next: RunState): void => {
  state = next;
  listener(state);
};

const board = startBoard({
  stdout: process.stdout,
  stdin: process.stdin,
  stderr: process.stderr,
  initial: state,
  subscribe: (each) => {
    listener = each;
    return () => {
      listener = () => {};
    };
  },
  readTail: async () => readFileSync(log, 'utf8'),
  now: () => {
    if (scenario === 'throws' && ticks > 0) throw new Error('a broken clock');
    return Date.parse('2026-11-30T23:12:00Z') + ticks * 1000;
  },
  tick: (each) => {
    const timer = setInterval(() => {
      if (scenario !== 'wide') ticks++;
      each();
    }, 100);
    return () => clearInterval(timer);
  },
  unicode: true,
  color: false,
  onInterrupt: () => {
    interrupts++;
    if (interrupts > 1) void end('ended at once', 130);
    else show(reduce(state, event(73, { type: 'run.stopping', reason: 'interrupted' })));
  },
  onQuit: () => void end('left by q', 2),
});

async function end(summary: string, code: number): Promise<void> {
  await board.stop();
  process.stdout.write(`${summary}\n`);
  process.exitCode = code;
  clearInterval(alive);
}

const alive = setInterval(() => {}, 1000);
void board.failed.then((error) => end(`the board failed: ${error.message}`, 1));
// eslint-disable-next-line no-console -- as a library would
if (scenario === 'console') console.log('printed while the board is up');
if (scenario === 'exits') setTimeout(() => process.exit(3), 300);
process.on('SIGTERM', () => {
  void board.stop().then(() => process.exit(143));
});
