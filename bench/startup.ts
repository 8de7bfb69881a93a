/** How long giro takes to start, beside Node itself. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { halfDone } from './half-done.js';
import { median, type Row } from './report.js';

/** What `giro status` may take for so many Issues, in starts of Node. */
export interface StatusSize {
  readonly issues: number;
  readonly must: number;
  readonly goal: number;
}

/** Measures `giro --version`, `giro --help` and `giro status` on Specs of growing size, interleaved with `node -e 0`. */
export function startup(options: {
  readonly program: string;
  readonly rounds: number;
  readonly sizes: readonly StatusSize[];
}): readonly Row[] {
  const { program, rounds, sizes } = options;
  const projects = sizes.map(({ issues }) => halfDone({ issues, program }));
  const commands: Readonly<Record<string, readonly string[]>> = {
    node: ['-e', '0'],
    '--version': [program, '--version'],
    '--help': [program, '--help'],
    ...Object.fromEntries(
      projects.map(({ repository }, at) => [
        statusOf(sizes[at]?.issues ?? 0),
        [program, 'status', 'many', '-C', repository],
      ]),
    ),
  };
  const times = new Map<string, number[]>();
  const names = Object.keys(commands);
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const name of round % 2 === 0 ? names : [...names].reverse()) {
        times.set(name, [...(times.get(name) ?? []), elapsed(commands[name] ?? [])]);
      }
    }
  } finally {
    for (const { folder } of projects) rmSync(folder, { recursive: true, force: true });
  }
  const middle = (name: string): number => median(times.get(name) ?? []);
  const row = (name: string, must: number, goal: number): Row => ({
    what: `giro ${name}, beside node -e 0`,
    measured: `${middle(name).toFixed(0)} ms / ${middle('node').toFixed(0)} ms`,
    ratio: middle(name) / middle('node'),
    must,
    goal,
  });
  return [
    row('--version', 1.5, 1.15),
    row('--help', 1.5, 1.15),
    ...sizes.map(({ issues, must, goal }) => row(statusOf(issues), must, goal)),
  ];
}

function statusOf(issues: number): string {
  return `status of ${String(issues)} Issues`;
}

function elapsed(args: readonly string[]): number {
  const start = process.hrtime.bigint();
  const result = spawnSync(process.execPath, [...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  if (result.status !== 0) throw new Error(`failed: node ${args.join(' ')}`);
  return Number(process.hrtime.bigint() - start) / 1e6;
}
