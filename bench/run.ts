/**
 * `npm run bench [part...]`: ratios to yardsticks measured in the same run, beside what must and what should be reached.
 * Parts: engine-1k, engine-10k, makespan, startup, memory.
 */
import { resolve } from 'node:path';
import { engineCost } from './engine-cost.js';
import { runMakespan } from './makespan.js';
import { memory } from './memory.js';
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

await part('startup', () => startup({ program, rounds: 11, issues: 1000 }));
await part('engine-1k', () => engineCost({ program, files: 1000, issues: 32, agents: 8, rounds: 5 }));
await part('engine-10k', () => engineCost({ program, files: 10_000, issues: 32, agents: 8, rounds: 5 }));
await part('makespan', () => runMakespan());
await part('memory', () => memory({ program, issues: 1000, agents: 64, outputBytes: 2_000_000 }));
say('');
table(rows);
