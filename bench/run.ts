/** `npm run bench`: ratios to yardsticks measured in the same run, beside what must and what should be reached. */
import { resolve } from 'node:path';
import { engineCost } from './engine-cost.js';
import { say, table, type Row } from './report.js';

const program = resolve(import.meta.dirname, '../bin/giro.js');
const wanted = process.argv.slice(2);
const rows: Row[] = [];

function part(name: string, measure: () => readonly Row[]): void {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  say(`${name} ...`);
  rows.push(...measure());
}

part('engine-1k', () => engineCost({ program, files: 1000, issues: 32, agents: 8, rounds: 5 }));
part('engine-10k', () => engineCost({ program, files: 10_000, issues: 32, agents: 8, rounds: 5 }));
table(rows);
