/**
 * `npm run sim -- --seeds N` simulates the seeds 1 to N (10,000 when absent), on every processor; `--from F` begins later,
 * `--seconds T` ends with as many as come to their end in that time. `--seed S` replays one, with everything that happens.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { say } from '../../bench/report.js';
import { simulate } from './simulate.js';

/** What one thread simulates: every `stride`-th seed. */
interface Part {
  readonly from: number;
  readonly below: number;
  readonly stride: number;
  readonly seconds: number;
}

/** What came of it. */
interface Tally {
  readonly seeds: number;
  readonly runs: number;
  readonly crashes: number;
  readonly failed: readonly string[];
}

/** A program that is wrong everywhere need not be told so ten thousand times. */
const mostFailures = 10;

async function tally({ from, below, stride, seconds }: Part): Promise<Tally> {
  const until = performance.now() + seconds * 1000;
  const failed: string[] = [];
  let [seeds, runs, crashes] = [0, 0, 0];
  for (let seed = from; seed < below && performance.now() < until && failed.length < mostFailures; seed += stride) {
    const report = await simulate(seed);
    seeds += 1;
    runs += report.runs;
    crashes += report.crashes;
    if (report.violation !== null) failed.push(`seed ${String(seed)}: ${report.violation}`);
  }
  return { seeds, runs, crashes, failed };
}

function inThread(part: Part): Promise<Tally> {
  return new Promise((resolve, reject) => {
    // Everything that a seed makes is garbage a moment later.
    const worker = new Worker(new URL(import.meta.url), {
      workerData: part,
      resourceLimits: { maxYoungGenerationSizeMb: 128 },
    });
    worker.once('message', resolve).once('error', reject);
  });
}

async function many(part: Omit<Part, 'stride'>): Promise<void> {
  const started = performance.now();
  const stride = Math.min(8, availableParallelism());
  const parts = Array.from({ length: stride }, (_, index) => ({ ...part, from: part.from + index, stride }));
  const tallies = await Promise.all(parts.map(inThread));
  const sum = (of: (one: Tally) => number): string => String(tallies.reduce((all, one) => all + of(one), 0));
  const failed = tallies.flatMap((one) => one.failed);
  for (const line of failed) say(`${line}\n  replay it: npm run sim -- --seed ${/\d+/.exec(line)?.[0] ?? ''}`);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const counts = `${sum((one) => one.seeds)} seeds, ${sum((one) => one.runs)} runs, ${sum((one) => one.crashes)} kills`;
  say(
    `${counts}: ${failed.length === 0 ? 'all that must hold holds' : `${String(failed.length)} failed`}; ${seconds} s`,
  );
  if (failed.length > 0) process.exitCode = 1;
}

async function replay(seed: number): Promise<void> {
  const { lines, violation, runs, crashes } = await simulate(seed, { isTold: true });
  for (const line of lines) say(line);
  const came = violation ?? 'all that must hold holds';
  say(`seed ${String(seed)}: ${came}; ${String(runs)} runs, ${String(crashes)} kills`);
  if (violation !== null) process.exitCode = 1;
}

function read() {
  const option = { type: 'string' } as const;
  const { values } = parseArgs({ options: { seed: option, seeds: option, from: option, seconds: option } });
  const number = (text: string | undefined, otherwise: number): number => {
    const value = text === undefined ? otherwise : Number(text);
    if (Number.isNaN(value)) throw new Error(`not a number: ${String(text)}`);
    return value;
  };
  const from = number(values.from, 1);
  const below = from + number(values.seeds, 10_000);
  return { seed: values.seed, from, below, seconds: number(values.seconds, Infinity) };
}

if (isMainThread) {
  const { seed, ...part } = read();
  if (seed === undefined) await many(part);
  else await replay(Number(seed));
} else {
  parentPort?.postMessage(await tally(workerData as Part));
}
