/** Who a process is, so that it can be told from a later one that was given the same number. */
import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** A process of some machine, for ever. An empty text: this system does not tell. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as the system writes it. */
  readonly startTime: string;
  /** Which boot of the machine. */
  readonly bootId: string;
  readonly host: string;
  /** Which numbering of processes: containers have their own. */
  readonly pidNamespace: string;
}

/** What `/proc/<pid>/stat` says. */
export interface ProcessStat {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly startTime: string;
}

/** Identifies the process this runs in. */
export function ownIdentity(): ProcessIdentity {
  return {
    pid: process.pid,
    startTime: look(process.pid).startTime ?? '',
    bootId: bootId(),
    host: machineName(),
    pidNamespace: textOr('', () => readlinkSync('/proc/self/ns/pid')),
  };
}

/** Reads an identity that was written as JSON, with whatever else stands there; `null`: it is none. */
export function parseIdentity(text: string): (ProcessIdentity & Readonly<Record<string, unknown>>) | null {
  try {
    const value: unknown = JSON.parse(text);
    return isIdentity(value) ? value : null;
  } catch {
    return null;
  }
}

function isIdentity(value: unknown): value is ProcessIdentity & Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  const texts = ['startTime', 'bootId', 'host', 'pidNamespace'];
  return typeof fields.get('pid') === 'number' && texts.every((name) => typeof fields.get(name) === 'string');
}

/** Says whether a process lives; `unknown` whenever that cannot be proved from here. */
export function isAlive(identity: ProcessIdentity): 'alive' | 'dead' | 'unknown' {
  const here = ownIdentity();
  if (identity.host !== here.host || identity.bootId === '' || here.bootId === '') return 'unknown';
  if (identity.bootId !== here.bootId) return 'dead';
  if (identity.pidNamespace !== here.pidNamespace) return 'unknown';
  const found = look(identity.pid);
  if (found.state === 'dead') return 'dead';
  if (found.startTime === undefined || identity.startTime === '') return 'unknown';
  return found.startTime === identity.startTime ? 'alive' : 'dead';
}

/** Parses `/proc/<pid>/stat`; the program's name in it may hold spaces, parentheses and line ends. */
export function parseProcessStat(text: string): ProcessStat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, parent, group, session] = fields;
  const startTime = fields[19];
  if (state === undefined || session === undefined || startTime === undefined)
    throw new Error(`not a stat line: ${text}`);
  return { state, parent: Number(parent), group: Number(group), session: Number(session), startTime };
}

interface Look {
  readonly state: 'dead' | 'present';
  /** Absent: it is there, but this process may not see more. */
  readonly startTime?: string;
}

function look(pid: number): Look {
  const startTime = process.platform === 'linux' ? startTimeFromProc(pid) : startTimeFromPs(pid);
  if (startTime !== null) return startTime === '' ? { state: 'dead' } : { state: 'present', startTime };
  // /proc may hide the processes of other users (hidepid); the kernel still answers whether the number is in use.
  return isNumberInUse(pid) ? { state: 'present' } : { state: 'dead' };
}

function startTimeFromProc(pid: number): string | null {
  try {
    const stat = parseProcessStat(readFileSync(`/proc/${String(pid)}/stat`, 'latin1'));
    return stat.state === 'Z' || stat.state === 'X' ? '' : stat.startTime;
  } catch {
    return null;
  }
}

function startTimeFromPs(pid: number): string | null {
  const text = textOr('', () => tell('/bin/ps', '-o', 'lstart=', '-p', String(pid)));
  return text === '' ? null : text;
}

function isNumberInUse(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

function bootId(): string {
  if (process.platform === 'linux') return textOr('', () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
  return textOr('', () => tell('/usr/sbin/sysctl', '-n', 'kern.bootsessionuuid'));
}

/** Names alone repeat (`localhost`, `build`): with the machine's id two machines that share a disk are told apart. */
function machineName(): string {
  const id = textOr('', () => readFileSync('/etc/machine-id', 'utf8'));
  return id === '' ? hostname() : `${hostname()} ${id}`;
}

function tell(file: string, ...args: readonly string[]): string {
  return execFileSync(file, args, {
    env: { LC_ALL: 'C', TZ: 'UTC' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

function textOr(fallback: string, read: () => string): string {
  try {
    return read().trim();
  } catch {
    return fallback;
  }
}
