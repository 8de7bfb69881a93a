/**
 * `npm run bench [part...]`: ratios to yardsticks measured in the same run, beside what must and what should be reached.
 * Parts: startup, resume-1k, resume-10k, engine-1k, engine-10k, makespan, memory.
 */
import { resolve } from 'node:path';
import { engineCost } from './engine-cost.js';
import { runMakespan } from './makespan.js';
import { memory } from './memory.js';
import { resume } from './resume.js';
import { say, table, type Row } from './report.js';
import { startup } from './startup.js';

const program = resolve(import.meta.dirname, '../bin/giro.js');
const wanted = process.argv.slice(2);
const rows: Row[] = [];

async function part(name: string, measure: () => readonly Row[] | Promise<readonly Row[]>): Promise<void> {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  say(`${name} ...`);
  rows.push(...(await measure()));
}

/** Of the Issues nine of ten are done. */
const statusSizes = [
  { issues: 100, must: 1.7, goal: 1.3 },
  { issues: 1000, must: 3, goal: 1.7 },
  { issues: 10_000, must: 8, goal: 4 },
];

await part('startup', () => startup({ program, rounds: 11, sizes: statusSizes }));
await part('resume-1k', () => resume({ program, rounds: 7, issues: 1000, must: 4, goal: 2 }));
await part('resume-10k', () => resume({ program, rounds: 5, issues: 10_000, must: 12, goal: 5 }));
await part('engine-1k', () => engineCost({ program, files: 1000, issues: 32, agents: 8, rounds: 5 }));
await part('engine-10k', () => engineCost({ program, files: 10_000, issues: 32, agents: 8, rounds: 5 }));
await part('makespan', () => runMakespan());
await part('memory', () => memory({ program, issues: 1000, agents: 64, outputBytes: 2_000_000 }));
say('');
table(rows);
