/** Who is in a process group, or left it: to tell work that still goes on from a server that only waits. */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';

/** A process that outlived the leader of its group. */
export interface GroupMember {
  /** Program and arguments, as far as they can be seen. */
  readonly command: string;
  /** It waits for connections, or belongs to one that does: it starts it, or was started by it. */
  readonly serves: boolean;
}

interface Found {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
  readonly listens: boolean;
}

const longestCommand = 200;

/** Looks at the living members of a group. Where the system does not show them there is one, of which nothing is known. */
export function membersOf(leader: number): readonly GroupMember[] {
  if (process.platform !== 'linux') return [{ command: 'a process', serves: false }];
  return lookedAt(({ group }) => group === leader);
}

/** A process that took itself out of its group, as a daemon does. */
export interface Stray extends GroupMember {
  readonly pid: number;
}

/**
 * Finds every living process of a call: those `inside` its cgroup, or where it has none (`null`) all that have these lines,
 * `NAME=value`, in their environment, which is handed down through every group and session. Reading all environments after
 * each call costs more than the rest of it; what has left its cgroup is found by its mark when the run ends. Where the system
 * shows neither there is none.
 */
export function straysOf(mark: readonly string[], inside: readonly number[] | null): readonly Stray[] {
  if (process.platform !== 'linux') return [];
  if (inside !== null) return inside.length === 0 ? [] : lookedAt(() => true, inside.map(String));
  const marked = numbersOfAll().filter((pid) => {
    const environment = `\0${textOf(`/proc/${pid}/environ`)}\0`;
    return mark.every((line) => environment.includes(`\0${line}\0`));
  });
  return marked.length === 0 ? [] : lookedAt(() => true, marked);
}

function numbersOfAll(): readonly string[] {
  return readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
}

function lookedAt(
  belongs: (process: { readonly group: number }) => boolean,
  pids: readonly string[] = numbersOfAll(),
): readonly Stray[] {
  let sockets: ReadonlySet<string> | null = null;
  const found = pids.flatMap((name) => {
    const pid = Number(name);
    const stat = textOf(`/proc/${name}/stat`);
    const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === undefined || state === 'Z' || state === 'X' || !belongs({ group: Number(group) })) return [];
    sockets ??= listeningSockets();
    return [memberOf(pid, { stat, parent: Number(parent), sockets })];
  });
  const byPid = new Map(found.map((member) => [member.pid, member]));
  const serving = new Set(found.filter(({ listens }) => listens).flatMap((member) => line(member, byPid)));
  return found.map((member) => ({
    pid: member.pid,
    command: member.command,
    serves: serving.has(member.pid) || line(member, byPid).some((pid) => byPid.get(pid)?.listens === true),
  }));
}

/** A member and those above it in the group. */
function line(member: Found, byPid: ReadonlyMap<number, Found>): readonly number[] {
  const pids: number[] = [];
  let at: Found | undefined = member;
  while (at !== undefined && !pids.includes(at.pid)) {
    pids.push(at.pid);
    at = byPid.get(at.parent);
  }
  return pids;
}

function memberOf(
  pid: number,
  known: { readonly stat: string; readonly parent: number; readonly sockets: ReadonlySet<string> },
): Found {
  const { stat, parent, sockets } = known;
  const words = textOf(`/proc/${String(pid)}/cmdline`)
    .split('\0')
    .filter((word) => word !== '');
  const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
  const command = (words.length === 0 ? name : words.join(' ')).slice(0, longestCommand);
  return { pid, parent, command, listens: openFiles(pid).some((file) => sockets.has(file)) };
}

function openFiles(pid: number): readonly string[] {
  const folder = `/proc/${String(pid)}/fd`;
  try {
    return readdirSync(folder).map((fd) => {
      try {
        return readlinkSync(`${folder}/${fd}`);
      } catch {
        return ''; // Closed while we looked.
      }
    });
  } catch {
    return []; // Ended, or not ours to see.
  }
}

/** Sockets that wait for connections, as a descriptor's link names them. */
function listeningSockets(): ReadonlySet<string> {
  const rows = (name: string): readonly (readonly string[])[] =>
    textOf(`/proc/net/${name}`)
      .split('\n')
      .map((row) => row.trim().split(/\s+/));
  const internet = [...rows('tcp'), ...rows('tcp6')].filter((row) => row[3] === '0A').map((row) => row[9]);
  const local = rows('unix')
    .filter((row) => row[3] === '00010000')
    .map((row) => row[6]);
  return new Set([...internet, ...local].map((inode) => `socket:[${inode ?? ''}]`));
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
