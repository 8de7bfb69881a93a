/**
 * Finds where this process may make cgroups, by reading only. Linux has two kinds:
 *
 * - version 2: one tree. A cgroup that hands controllers down holds no processes itself, and a process moves only below an
 *   ancestor of both places that may be written. So there are three ways: the very root, which is exempt; the own cgroup,
 *   when only this process and its children are in it; or beside the own cgroup, when that loosens nothing.
 * - version 1: a tree for each controller, with neither of these rules.
 */
import { accessSync, constants, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { membershipOf } from './cgroup-name.js';
import { parseProcessStat } from './identity.js';

/** What limits the processes of a group. */
export type Controller = 'pids' | 'memory';

/** A folder below which groups can be made, with what limits them there. */
export interface Hierarchy {
  readonly folder: string;
  readonly controllers: readonly Controller[];
}

/** What this machine allows. */
export type CgroupsHere =
  | { readonly kind: 'v1'; readonly hierarchies: readonly Hierarchy[] }
  | {
      readonly kind: 'v2';
      readonly hierarchies: readonly [Hierarchy];
      /** What has to be done first: nothing, or hand the controllers down, or go into a cgroup of one's own and then do it. */
      readonly first: 'nothing' | 'hand-down' | 'move';
      /** What the own cgroup may have of processes, where groups beside it are made. */
      readonly processes?: number;
    }
  | { readonly kind: 'none'; readonly why: string; readonly fix: string | null };

/** Looks for it; `root` is where `/proc` and `/sys` are. */
export function findCgroups(root = '', platform: NodeJS.Platform = process.platform): CgroupsHere {
  if (platform !== 'linux') return none('only Linux has cgroups', null);
  const mounts = parseMounts(textOf(`${root}/proc/self/mountinfo`));
  const own = parseMembership(textOf(`${root}/proc/self/cgroup`));
  if (mounts.length === 0) return none('no cgroups are mounted', null);
  const at = (folder: string): string => `${root}${folder}`;
  const second = unifiedOf(mounts, own);
  const v2 = second === null ? null : findSecond({ own: at(second.folder), isTop: second.isTop, root });
  if (v2 !== null && v2.kind !== 'none') return v2;
  const hierarchies = firstHierarchies(mounts, own)
    .map((one) => ({ ...one, folder: at(one.folder) }))
    // Before Linux 5.11 a group was free of the limits of those above it, unless that was switched on.
    .filter(({ folder }) => textOf(`${folder}/memory.use_hierarchy`).trim() !== '0');
  if (hierarchies.length === 0) return v2 ?? none('no cgroups with the pids controller are mounted', null);
  const usable = hierarchies.filter(({ folder }) => isWritable(folder));
  if (!usable.some(({ controllers }) => controllers.includes('pids')))
    return none(
      'its cgroups of version 1 may be written by root only',
      'run giro in a container or session of its own',
    );
  return { kind: 'v1', hierarchies: usable };
}

const systemdFix = 'start it as: systemd-run --user --scope -p Delegate=yes giro implement ...';

interface OwnCgroup {
  readonly own: string;
  /** It is all of the tree that can be seen from here. */
  readonly isTop: boolean;
  readonly root: string;
}

function findSecond({ own, isTop, root }: OwnCgroup): CgroupsHere {
  const available = wordsOf(`${own}/cgroup.controllers`);
  if (!available.includes('pids')) return none('its cgroup has no pids controller', systemdFix);
  const controllers = known(available);
  // Only the very root has no type.
  if (textOf(`${own}/cgroup.type`) === '') {
    if (!isWritable(own)) return none('its cgroup is read-only', null);
    const isDone = controllers.every((name) => wordsOf(`${own}/cgroup.subtree_control`).includes(name));
    return { kind: 'v2', hierarchies: [{ folder: own, controllers }], first: isDone ? 'nothing' : 'hand-down' };
  }
  if (isWritable(own) && strangersIn(own, root).length === 0)
    return { kind: 'v2', hierarchies: [{ folder: own, controllers }], first: 'move' };
  if (isTop) return none('its cgroup is shared with other processes, and it is the root of a container', null);
  return findBeside(own);
}

/** Groups beside the own one are free of its limits: only where it has none that would be loosened. */
function findBeside(own: string): CgroupsHere {
  if (membershipOf(own).length > 0) return none('it was started by an agent of another giro, whose limits hold', null);
  const parent = dirname(own);
  if (!isWritable(parent))
    return none('its cgroup is shared with other processes, and not its own to divide', systemdFix);
  const controllers = known(wordsOf(`${parent}/cgroup.subtree_control`));
  if (!controllers.includes('pids')) return none('the cgroup above its own hands no pids controller down', systemdFix);
  const limited = ['memory.max', 'memory.high', 'cpu.max', 'cpuset.cpus'].filter((name) => isLimit(`${own}/${name}`));
  if (limited.length > 0)
    return none(`its cgroup has limits that must go on to hold (${limited.join(', ')})`, systemdFix);
  const processes = Number(textOf(`${own}/pids.max`));
  return {
    kind: 'v2',
    hierarchies: [{ folder: parent, controllers }],
    first: 'nothing',
    ...(processes > 0 ? { processes } : {}),
  };
}

function isLimit(file: string): boolean {
  const text = textOf(file).trim();
  return text !== '' && !text.startsWith('max');
}

/** Processes of a cgroup that are neither this one nor below it. */
function strangersIn(folder: string, root: string): readonly number[] {
  return processesIn(folder).filter((pid) => !isBelow(pid, root));
}

/** This process and those below it that are in a cgroup itself. */
export function ownProcessesIn(folder: string): readonly number[] {
  return processesIn(folder).filter((pid) => isBelow(pid, ''));
}

function isBelow(pid: number, root: string): boolean {
  const seen = new Set<number>();
  for (let at = pid; at > 0 && !seen.has(at);) {
    if (at === process.pid) return true;
    seen.add(at);
    const stat = textOf(`${root}/proc/${String(at)}/stat`);
    at = stat === '' ? 0 : parseProcessStat(stat).parent;
  }
  return false;
}

/** The numbers of the processes that are in a cgroup itself. */
export function processesIn(folder: string): readonly number[] {
  return wordsOf(`${folder}/cgroup.procs`).map(Number);
}

function firstHierarchies(mounts: readonly Mount[], own: ReadonlyMap<string, string>): readonly Hierarchy[] {
  return mounts.flatMap((mount): Hierarchy[] => {
    const controllers = known(mount.options);
    const [name] = controllers;
    const path = name === undefined ? undefined : own.get(name);
    if (mount.type !== 'cgroup' || path === undefined) return [];
    const below = belowMount(mount, path);
    return below === null ? [] : [{ folder: below, controllers }];
  });
}

function unifiedOf(
  mounts: readonly Mount[],
  own: ReadonlyMap<string, string>,
): { readonly folder: string; readonly isTop: boolean } | null {
  const mount = mounts.find(({ type }) => type === 'cgroup2');
  const path = own.get('');
  const folder = mount === undefined || path === undefined ? null : belowMount(mount, path);
  return folder === null ? null : { folder, isTop: folder === mount?.point };
}

/** Where a cgroup is in the file system: the mount may show a part of the tree only. */
function belowMount({ root, point }: Mount, path: string): string | null {
  const above = root === '/' ? '' : root;
  if (path !== above && !path.startsWith(`${above}/`)) return null;
  const below = path.slice(above.length);
  return below === '' || below === '/' ? point : `${point}${below}`;
}

interface Mount {
  readonly root: string;
  readonly point: string;
  readonly type: string;
  readonly options: readonly string[];
}

function parseMounts(text: string): readonly Mount[] {
  return text.split('\n').flatMap((line): Mount[] => {
    const [before, after] = line.split(' - ');
    const [, , , root, point] = before?.split(' ') ?? [];
    const [type, , options] = after?.split(' ') ?? [];
    if (root === undefined || point === undefined || type === undefined || !/^cgroup2?$/.test(type)) return [];
    return [{ root: unescaped(root), point: unescaped(point), type, options: options?.split(',') ?? [] }];
  });
}

/** White space is written in octal there. */
function unescaped(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** The own cgroup by controller; by the empty text that of version 2. */
function parseMembership(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split('\n').flatMap((line): [string, string][] => {
      const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      return names === undefined || path === undefined ? [] : names.split(',').map((name) => [name, path]);
    }),
  );
}

function known(names: readonly string[]): readonly Controller[] {
  return (['pids', 'memory'] as const).filter((name) => names.includes(name));
}

function isWritable(folder: string): boolean {
  try {
    for (const path of [folder, join(folder, 'cgroup.procs')]) accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function none(why: string, fix: string | null): CgroupsHere {
  return { kind: 'none', why, fix };
}

function wordsOf(file: string): readonly string[] {
  return textOf(file)
    .split(/\s+/)
    .filter((word) => word !== '');
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
