/**
 * Finds what carries a mark, and whoever else is in a folder.
 *
 * A process is proven to be a child of giro when it has the mark, when it is in a cgroup that has it, or when it is in a
 * session that such a process is in: nobody enters a session but from the one who made it, and that was an agent or a gate, or one of theirs. Where it
 * works says nothing: a person may stand there too. Linux alone shows all this; elsewhere nothing is found.
 */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { membershipOf } from './cgroup-name.js';
import { parseProcessStat, type ProcessStat } from './identity.js';
import { markVariable, parseMark, type RunMark } from './mark.js';

/** A living process. */
export interface FoundProcess {
  readonly pid: number;
  /** Program and arguments, as far as they can be seen. */
  readonly command: string;
  /** The folder it works in; empty when that cannot be seen. */
  readonly folder: string;
  /** Variables that giro gave it, by name; none when it has cleared its environment. */
  readonly given: ReadonlyMap<string, string>;
}

/** What to look for. */
export interface Search {
  readonly isMeant: (mark: RunMark) => boolean;
  /**
   * Whoever works in or below one of these is a stranger, when it has no mark, is not proven to be of one that has, and was
   * not started by this process.
   */
  readonly folders: readonly string[];
  /** Only who works in or below one of them is asked for: where nobody does, which is nearly always, no environment is read. */
  readonly onlyThere?: boolean;
}

/** What was found. */
export interface Findings {
  readonly marked: readonly FoundProcess[];
  /** Of those meant, what this process was started by, as when the agent of a dead giro starts giro: in neither of the others. */
  readonly above: readonly FoundProcess[];
  readonly strangers: readonly FoundProcess[];
}

const nothing: Findings = { marked: [], above: [], strangers: [] };

/** Looks once at every process. */
export function lookForMarked({ isMeant, folders, onlyThere = false }: Search): Findings {
  if (process.platform !== 'linux') return nothing;
  const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  const near = folders.length === 0 ? [] : pids.filter((pid) => isBelow(linkOf(`/proc/${pid}/cwd`), folders));
  if (onlyThere && near.length === 0) return nothing;
  const marks = new Map(pids.map((pid) => [pid, marksOf(pid)] as const).filter(([, all]) => all.length > 0));
  const meant = new Set([...marks].filter(([, all]) => all.some(isMeant)).map(([pid]) => pid));
  if (meant.size === 0 && near.length === 0) return nothing;
  const stats = new Map(pids.flatMap((pid) => statOf(pid) ?? []));
  const above = lineOf(process.pid, stats);
  const sessions = new Set([...meant].flatMap((pid) => stats.get(pid)?.session ?? []));
  // The leader of session 0 is outside of this container: whatever was brought in from there is in it.
  sessions.delete(0);
  const isBelowUs = (pid: string): boolean => lineOf(Number(pid), stats).has(process.pid);
  const isProven = (pid: string): boolean => meant.has(pid) || sessions.has(stats.get(pid)?.session ?? -1);
  const living = [...stats.keys()].filter((pid) => !above.has(Number(pid)));
  const beside = new Set(near);
  return {
    marked: living.filter(isProven).map(foundProcess),
    above: [...meant].filter((pid) => pid !== String(process.pid) && above.has(Number(pid))).map(foundProcess),
    strangers: living
      .filter((pid) => beside.has(pid) && !isProven(pid) && !marks.has(pid) && !isBelowUs(pid))
      .map(foundProcess),
  };
}

/** A process and those above it. */
function lineOf(pid: number, stats: ReadonlyMap<string, ProcessStat>): ReadonlySet<number> {
  const line = new Set<number>();
  for (let at = pid; at > 0 && !line.has(at); at = stats.get(String(at))?.parent ?? 0) line.add(at);
  return line;
}

/** The mark of its environment, and those of the cgroups it is in. */
function marksOf(pid: string): readonly RunMark[] {
  const inside = membershipOf(textOf(`/proc/${pid}/cgroup`)).map(({ mark }) => mark);
  const environment = environmentOf(pid);
  const start = environment.indexOf(`\0${markVariable}=`);
  if (start === -1) return inside;
  const from = start + markVariable.length + 2;
  const mark = parseMark(environment.slice(from, environment.indexOf('\0', from)));
  return mark === null ? inside : [mark, ...inside];
}

function isBelow(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(`${folder}/`));
}

function foundProcess(pid: string): FoundProcess {
  const words = textOf(`/proc/${pid}/cmdline`).split('\0');
  const command = words.filter((word) => word !== '').join(' ');
  const lines = environmentOf(pid).split('\0');
  const given = lines.flatMap((line): [string, string][] => {
    const [, name, value] = /^(GIRO_[A-Z_]+)=(.*)$/s.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value]];
  });
  // One that has cleared its environment is still in the cgroup of what started it.
  const inside = membershipOf(textOf(`/proc/${pid}/cgroup`)).at(-1)?.given ?? {};
  return {
    pid: Number(pid),
    command,
    folder: linkOf(`/proc/${pid}/cwd`),
    given: new Map([...Object.entries(inside), ...given]),
  };
}

/** Every line between two null characters. */
function environmentOf(pid: string): string {
  return `\0${textOf(`/proc/${pid}/environ`)}\0`;
}

function statOf(pid: string): readonly [[string, ProcessStat]] | null {
  const text = textOf(`/proc/${pid}/stat`);
  if (text === '') return null;
  const stat = parseProcessStat(text);
  return stat.state === 'Z' || stat.state === 'X' ? null : [[pid, stat]];
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // Ended, or not ours to see.
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
