/** Finds what the machine is like, for `giro doctor`: reads, and asks two programs for their version; writes nothing. */
import { existsSync, readFileSync } from 'node:fs';
import { findShell } from '../gates/shell.js';
import { findCgroups } from '../platform/cgroups.js';
import { childEnvironment } from '../platform/environment.js';
import { diskOf } from '../platform/mounts.js';
import { runPlumbing } from '../platform/plumbing.js';
import { isStartable } from '../platform/startable.js';
import { findGitVersion } from '../worktree/git.js';
import type { FolderFacts, MachineFacts, TerminalFacts } from './doctor-checks.js';
import { chooseShow, isUnicode, type Terminal } from './show.js';

/** Looks at the machine; `folders`: where giro writes, by name. */
export async function lookAtMachine(
  terminal: Terminal,
  folder: string,
  folders: Readonly<Record<string, string>>,
): Promise<MachineFacts> {
  const { env } = terminal;
  const child = childEnvironment(env);
  const [git, shell, openFiles] = await Promise.all([
    findGitVersion(env, folder),
    findShell(child),
    openFilesOf(child),
  ]);
  return {
    node: process.versions.node,
    git,
    shell: shell.ok ? shell.value[0] : null,
    folders: Object.entries(folders).map(([name, path]): FolderFacts => ({ name, path, ...diskOf(path) })),
    openFiles,
    platform: process.platform,
    isRoot: process.getuid?.() === 0,
    cgroups: findCgroups(),
    hasEnvironments: textOf('/proc/self/environ') !== '',
    bubblewrap: isStartable('bwrap', { cwd: '/', env: child }),
    userNamespaces: userNamespaces(),
    nowMs: Date.now(),
    terminal: terminalOf(terminal),
  };
}

/** What a child may have open: Node raises its own limit to the highest it may. */
async function openFilesOf(env: Readonly<Record<string, string>>): Promise<number | null> {
  const { code, stdout } = await runPlumbing({
    file: '/bin/sh',
    args: ['-c', 'ulimit -n'],
    env,
    cwd: '/',
    maxBytes: 64,
  });
  const text = stdout.toString().trim();
  if (text === 'unlimited') return Number.MAX_SAFE_INTEGER;
  return code === 0 && /^\d+$/.test(text) ? Number(text) : null;
}

function userNamespaces(): MachineFacts['userNamespaces'] {
  if (!existsSync('/proc/self/ns/user')) return 'unknown';
  const most = textOf('/proc/sys/user/max_user_namespaces').trim();
  const isOff = textOf('/proc/sys/kernel/unprivileged_userns_clone').trim() === '0';
  const isRestricted = textOf('/proc/sys/kernel/apparmor_restrict_unprivileged_userns').trim() === '1';
  return most === '0' || isOff || isRestricted ? 'refused' : 'allowed';
}

function terminalOf(terminal: Terminal): TerminalFacts {
  const { stdout, env } = terminal;
  const isTerminal = stdout.isTTY;
  return {
    isTerminal,
    board: chooseShow(terminal, { json: false, plain: false, quiet: false }, 'one') === 'board',
    columns: isTerminal ? stdout.columns : null,
    rows: isTerminal ? stdout.rows : null,
    hasColors: isTerminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb',
    hasUnicode: isUnicode(env),
    ci: env['CI'] !== undefined && !['', '0', 'false'].includes(env['CI']),
  };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
