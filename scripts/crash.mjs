/**
 * `npm run crash`: kills giro before every kind of step and cuts the power, and lets it recover; writes the tables of docs/durability.md. Only kinds that
 * contain `GIRO_CRASH_KIND`, when that is set.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const document = path.resolve(import.meta.dirname, '../docs/durability.md');
const folder = mkdtempSync(path.join(tmpdir(), 'giro-crash-'));
const report = path.join(folder, 'table.md');
const tests = ['--no-install', 'vitest', 'run', 'test/crash', ...process.argv.slice(2)];
/** With the table of power cuts, when they were tried. */
function withPower(text) {
  const table = existsSync(`${report}.power`) ? readFileSync(`${report}.power`, 'utf8') : null;
  return table === null ? text : text.replace(/(<!-- power -->\n\n)[^]*?(\n<!-- \/power -->)/, `$1${table}$2`);
}

const { status } = spawnSync('npx', tests, { stdio: 'inherit', env: { ...process.env, GIRO_CRASH_REPORT: report } });
process.exitCode = status ?? 1;
try {
  const table = readFileSync(report, 'utf8');
  const text = readFileSync(document, 'utf8');
  if (process.env.GIRO_CRASH_KIND === undefined)
    writeFileSync(document, withPower(text).replace(/(<!-- matrix -->\n\n)[^]*?(\n<!-- \/matrix -->)/, `$1${table}$2`));
  console.log(table);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
