/** How long giro takes to start, beside Node itself. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { manyIssues } from './many-issues.js';
import { median, type Row } from './report.js';

/** Measures `giro --version` and `giro status` on Specs of growing size, interleaved with `node -e 0`. */
export function startup(options: {
  readonly program: string;
  readonly rounds: number;
  readonly issues: number;
}): readonly Row[] {
  const { program, rounds, issues } = options;
  const project = manyIssues({ issues, program });
  const commands = {
    node: ['-e', '0'],
    version: [program, '--version'],
    help: [program, '--help'],
    status: [program, 'status', 'many', '-C', project.repository],
  };
  const times = new Map<keyof typeof commands, number[]>();
  const names = Object.keys(commands) as (keyof typeof commands)[];
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const name of round % 2 === 0 ? names : [...names].reverse()) {
        times.set(name, [...(times.get(name) ?? []), elapsed(commands[name])]);
      }
    }
  } finally {
    rmSync(project.folder, { recursive: true, force: true });
  }
  const middle = (name: keyof typeof commands): number => median(times.get(name) ?? []);
  const row = (what: string, name: keyof typeof commands, must: number, goal: number): Row => ({
    what,
    measured: `${middle(name).toFixed(0)} ms / ${middle('node').toFixed(0)} ms`,
    ratio: middle(name) / middle('node'),
    must,
    goal,
  });
  return [
    row('giro --version, beside node -e 0', 'version', 1.5, 1.15),
    row('giro --help, beside node -e 0', 'help', 1.5, 1.15),
    row(`giro status of ${String(issues)} Issues, beside node -e 0`, 'status', 3, 1.7),
  ];
}

function elapsed(args: readonly string[]): number {
  const start = process.hrtime.bigint();
  const result = spawnSync(process.execPath, [...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  if (result.status !== 0) throw new Error(`failed: node ${args.join(' ')}`);
  return Number(process.hrtime.bigint() - start) / 1e6;
}
