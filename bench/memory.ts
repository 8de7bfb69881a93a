/** How much memory a run of many Issues takes at its peak, beside Node itself. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { manyIssues } from './many-issues.js';
import { say, type Row } from './report.js';

/** What a run of the benchmark is made of. */
interface Load {
  readonly program: string;
  readonly issues: number;
  readonly agents: number;
  readonly outputBytes: number;
}

/** Measures the peak of a real run with many agents that print much, and what it grows with. */
export async function memory(load: Load): Promise<readonly Row[]> {
  const { issues, agents, outputBytes } = load;
  const node = await peak(['-e', 'setTimeout(() => {}, 200)']);
  const whole = await peakOfRun(load);
  const fewer = Math.round(issues / 4);
  const part = await peakOfRun({ ...load, issues: fewer });
  const quiet = await peakOfRun({ ...load, issues: fewer, outputBytes: 0 });
  say(`  ${String(issues)} Issues, ${String(agents)} agents at once, ${String(outputBytes / 1e6)} MB of output each`);
  return [
    {
      what: `peak memory, ${String(issues)} Issues, ${String(agents)} agents`,
      measured: `${megabytes(whole)} / ${megabytes(node)}`,
      ratio: whole / node,
      must: 2.5,
      goal: 1.7,
    },
    {
      what: `its growth in MB per 1,000 Issues, from ${String(fewer)} on`,
      measured: `${megabytes(whole)} - ${megabytes(part)}`,
      ratio: (whole - part) / 1024 / ((issues - fewer) / 1000),
      must: 10,
      goal: 3,
    },
    {
      what: `its growth in MB per MB of output, ${String(fewer)} Issues`,
      measured: `${megabytes(part)} - ${megabytes(quiet)}`,
      ratio: (part - quiet) / 1024 / ((fewer * outputBytes) / 1e6),
      must: 0.1,
      goal: 0,
    },
  ];
}

function megabytes(kibibytes: number): string {
  return `${(kibibytes / 1024).toFixed(0)} MB`;
}

async function peakOfRun({ program, issues, agents, outputBytes }: Load): Promise<number> {
  const project = manyIssues({ issues, program, outputBytes });
  try {
    return await peak([program, 'implement', 'many', '--json', '-c', String(agents), '-C', project.repository]);
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
