/** `giro doctor`: what this machine and this repository can do for giro, and what mends what they cannot. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { printable } from '../platform/text.js';
import { openGit } from '../worktree/git.js';
import { checksOf, type Check } from './doctor-checks.js';
import { lookAtMachine } from './doctor-machine.js';
import { lookAtPolicy, lookAtRepository } from './doctor-project.js';
import { exitCodes, type ExitCode } from './exit.js';
import { write, type Terminal } from './show.js';
import { giroVersion } from './version.js';

/** What was typed. */
export interface DoctorOptions {
  readonly json: boolean;
  readonly folder: string;
}

/** Runs the command. */
export async function doctor({ json, folder }: DoctorOptions, terminal: Terminal): Promise<ExitCode> {
  const opened = await openGit({ folder, own: terminal.env, runFolder: null });
  try {
    const repository = await lookAtRepository(opened);
    const top = opened.ok ? opened.value.user.topLevel : null;
    const policy = await lookAtPolicy(top, terminal.env);
    const cache = join(terminal.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'giro');
    const folders = {
      'cache folder': (policy.kind === 'read' ? policy.root : null) ?? cache,
      ...(opened.ok ? { 'folder for logs and locks': join(opened.value.commonDir, 'giro') } : {}),
    };
    const machine = await lookAtMachine(terminal, folder, folders);
    const checks = checksOf({ machine, repository, policy });
    write(terminal, json ? `${jsonOf(checks)}\n` : textOf(checks, machine.terminal.hasColors));
    return checks.some(({ status }) => status === 'problem') ? exitCodes.error : exitCodes.proof;
  } finally {
    if (opened.ok) await opened.value.close();
  }
}

function jsonOf(checks: readonly Check[]): string {
  const problems = checks.filter(({ status }) => status === 'problem').length;
  return JSON.stringify({ format_version: 1, giro: giroVersion, problems, checks });
}

const colors: Readonly<Record<Check['status'], number>> = { ok: 32, note: 33, problem: 31 };

/** Shows the checks, and how many need something done. */
export function textOf(checks: readonly Check[], hasColors: boolean): string {
  const lines: string[] = [];
  const width = Math.max(...checks.map(({ name }) => name.length));
  let area: Check['area'] | null = null;
  for (const check of checks) {
    if (check.area !== area) lines.push(...(area === null ? [] : ['']), check.area);
    ({ area } = check);
    const status = check.status.padEnd(7);
    const shown = hasColors ? `\u001b[${String(colors[check.status])}m${status}\u001b[0m` : status;
    lines.push(`  ${shown}  ${printable(check.name).padEnd(width)}  ${printable(check.detail)}`);
    if (check.fix !== null) lines.push(`${' '.repeat(11)}${' '.repeat(width)}  ${printable(check.fix)}`);
  }
  return `${[...lines, '', summaryOf(checks)].join('\n')}\n`;
}

function summaryOf(checks: readonly Check[]): string {
  const problems = checks.filter(({ status }) => status === 'problem').length;
  if (problems === 0) return 'nothing is a problem';
  return `${String(problems)} ${problems === 1 ? 'problem keeps' : 'problems keep'} giro from working here`;
}
