/** How much memory a run of many Issues takes at its peak, beside Node itself. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { manyIssues } from './many-issues.js';
import { say, type Row } from './report.js';

/** Measures the peak of a real run with many agents that print much. */
export async function memory(options: {
  readonly program: string;
  readonly issues: number;
  readonly agents: number;
  readonly outputBytes: number;
}): Promise<readonly Row[]> {
  const { program, issues, agents, outputBytes } = options;
  const node = await peak(['-e', 'setTimeout(() => {}, 200)']);
  const project = manyIssues({ issues, program, outputBytes });
  try {
    const giro = await peak([program, 'implement', 'many', '--json', '-c', String(agents), '-C', project.repository]);
    say(`  ${String(issues)} Issues, ${String(agents)} agents at once, ${String(outputBytes / 1e6)} MB of output each`);
    return [
      {
        what: `peak memory, ${String(issues)} Issues, ${String(agents)} agents`,
        measured: `${(giro / 1024).toFixed(0)} MB / ${(node / 1024).toFixed(0)} MB`,
        ratio: giro / node,
        must: 2.5,
        goal: 1.7,
      },
    ];
  } finally {
    rmSync(project.folder, { recursive: true, force: true });
  }
}

/** The high-water mark of one process in KiB, as the kernel counts it. */
async function peak(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [...args], { stdio: 'ignore' });
  const ended = new Promise<number | null>((done) => child.on('exit', done));
  let highest = 0;
  for (let running = true; running;) {
    highest = Math.max(highest, highWater(child.pid ?? 0));
    running = await Promise.race([ended.then(() => false), delay(20).then(() => true)]);
  }
  const code = await ended;
  if (code !== 0) throw new Error(`ended with ${String(code)}: ${args.join(' ')}`);
  return highest;
}

function highWater(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
