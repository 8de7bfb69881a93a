/** How long a Spec of which nine of ten Issues are done takes until its next agent starts, beside Node itself. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { halfDone, type HalfDone } from './half-done.js';
import { median, say, type Row } from './report.js';

/** What is measured. */
export interface ResumeOptions {
  readonly program: string;
  readonly rounds: number;
  readonly issues: number;
  readonly must: number;
  readonly goal: number;
}

/** One start: until the event, or the end of a program that has none. */
interface Start {
  readonly wallMs: number;
  /** With the git that it waited for. */
  readonly cpuMs: number;
}

/** Kills giro at its first agent, again and again, between starts of Node. */
export async function resume(options: ResumeOptions): Promise<readonly Row[]> {
  const { program, rounds, issues } = options;
  const before = process.hrtime.bigint();
  const project = halfDone({ issues, program });
  say(`  ${String(issues)} Issues made in ${String(Math.round(since(before) / 1000))} s, ${String(project.done)} done`);
  const results = { node: [] as Start[], giro: [] as Start[] };
  try {
    // The first one judges the base, which a run that was killed had done.
    await first(project, program);
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? (['node', 'giro'] as const) : (['giro', 'node'] as const);
      for (const name of order)
        results[name].push(name === 'node' ? await start(['-e', '0'], null) : await first(project, program));
    }
  } finally {
    rmSync(project.folder, { recursive: true, force: true });
  }
  const middle = (name: 'node' | 'giro', of: keyof Start): number => median(results[name].map((one) => one[of]));
  const row = (what: string, of: keyof Start): Row => ({
    what,
    measured: `${middle('giro', of).toFixed(0)} ms / ${middle('node', of).toFixed(0)} ms`,
    ratio: middle('giro', of) / middle('node', of),
  });
  const name = `re-run of ${String(issues)} Issues to its first agent`;
  return [
    { ...row(`${name}, beside node -e 0`, 'wallMs'), must: options.must, goal: options.goal },
    row(`${name}, CPU`, 'cpuMs'),
  ];
}

/** Starts giro and kills it at its first agent; then everything is as before. */
async function first({ repository, folder }: HalfDone, program: string): Promise<Start> {
  const args = [program, 'implement', 'many', '--json', '-c', '1', '-C', repository];
  let issue = '';
  const result = await start(args, (line) => {
    issue = /"type":"attempt.started".*?"issue":"([^"]+)"/.exec(line)?.[1] ?? '';
    return issue !== '';
  });
  const git = spawnSync('git', ['-C', repository, 'update-ref', '-d', `refs/heads/giro-issue/many/${issue}`]);
  if (git.status !== 0) throw new Error(String(git.stderr));
  rmSync(join(folder, 'worktrees'), { recursive: true, force: true });
  rmSync(join(repository, '.git/worktrees'), { recursive: true, force: true });
  return result;
}

function start(args: readonly string[], isOver: ((line: string) => boolean) | null): Promise<Start> {
  return new Promise((resolve, reject) => {
    const began = process.hrtime.bigint();
    const child = spawn(process.execPath, [...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    const cpuBefore = cpuOfChildren();
    let rest = '';
    let wallMs: number | null = null;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      if (wallMs !== null || isOver === null || !lines.some(isOver)) return;
      wallMs = since(began);
      child.kill('SIGKILL');
    });
    child.on('exit', () => {
      if (isOver === null) wallMs = since(began);
    });
    child.on('close', () => {
      if (wallMs === null) reject(new Error(`nothing was started: node ${args.join(' ')}`));
      else resolve({ wallMs, cpuMs: cpuOfChildren() - cpuBefore });
    });
  });
}

function since(began: bigint): number {
  return Number(process.hrtime.bigint() - began) / 1e6;
}

/** Processor time of all children that have ended, as the kernel counts it in hundredths of a second. */
function cpuOfChildren(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  const [user = 0, system = 0] = fields.slice(13, 15).map(Number);
  return (user + system) * 10;
}
