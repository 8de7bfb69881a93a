/**
 * Limits on what a run starts, which only the kernel can enforce: a cgroup of the run, with one of each call in it (an agent,
 * judge, planner, gate or set-up).
 *
 * 1. A call is in its cgroup before its program starts: a shell goes in and then becomes the program, with the same number.
 * 2. Nothing else is moved, but for giro itself where it is alone in a cgroup that it has to hand controllers down in.
 * 3. What cannot be done leaves the call as it would be without: limits are no verdict.
 * 4. All that is made has the mark of the run in its name, so that a later giro knows it; only what is empty is removed.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { callGroupName, parseRunGroupName, runGroupName } from './cgroup-name.js';
import { findCgroups, ownProcessesIn, processesIn, type CgroupsHere, type Hierarchy } from './cgroups.js';
import type { Environment } from './environment.js';
import { isOwnerDead, type RunMark } from './mark.js';
import { shellWord } from './text.js';

/** What may be used. */
export interface ProcessLimits {
  /** Processes and threads of one call, with all that it starts. */
  readonly processes: number;
  /** Bytes of memory of one call, with all that it starts; `null`: no more than all of the run together. */
  readonly memoryBytes: number | null;
}

/** The cgroup of a run. */
export interface Confinement {
  /** Makes the cgroup of a call; `null` where the machine allows none. */
  open(environment: Environment): Cell | null;
  /** Removes what is empty. */
  close(): void;
}

/** The cgroup of a call. */
export interface Cell {
  /** The command that goes into it and becomes the program. */
  readonly entering: (argv: readonly [string, ...string[]], environment: Environment) => readonly [string, ...string[]];
  /** The processes that are in it. */
  readonly members: () => readonly number[];
  /** Lets it start nothing more, and kills all of it. */
  readonly kill: () => void;
  /** Which limit it met, in words; `null`: none. */
  readonly met: () => string | null;
  /** Removes it, if nothing is in it. */
  readonly close: () => void;
}

/** All of a run together may have this part of the machine's memory, of its swap half, and half of its process numbers. */
const memoryShare = 0.85;

/** Opens the confinement of a run; cgroups are made with the first call. */
export function openConfinement(
  mark: RunMark,
  limits: ProcessLimits,
  find: () => CgroupsHere = findCgroups,
): Confinement {
  let run: RunGroup | null | undefined;
  let calls = 0;
  return {
    open(environment) {
      if (run === undefined) run = openRun(mark, find());
      if (run === null) return null;
      return openCell(run, callGroupName((calls += 1), environment), limits);
    },
    close() {
      if (run !== null && run !== undefined) closeRun(run);
      run = null;
    },
  };
}

/** No limits: for what has no run. */
export const noConfinement: Confinement = { open: () => null, close: () => undefined };

interface RunGroup {
  readonly here: Exclude<CgroupsHere, { kind: 'none' }>;
  readonly hierarchies: readonly Hierarchy[];
  readonly memoryBytes: number;
}

function openRun(mark: RunMark, here: CgroupsHere): RunGroup | null {
  if (here.kind === 'none') return null;
  if (here.kind === 'v2' && !prepare(here)) return null;
  sweep(here.hierarchies);
  const name = runGroupName(mark);
  const hierarchies = here.hierarchies.map((one) => ({ ...one, folder: `${one.folder}/${name}` }));
  const run = { here, hierarchies, memoryBytes: Math.floor(machineMemory() * memoryShare) };
  const isMade = hierarchies.every(({ folder, controllers }) => {
    if (!makeGroup(folder)) return false;
    limit({ folder, controllers }, { processes: mostProcesses(here), memoryBytes: run.memoryBytes });
    return here.kind === 'v1' || handDown({ folder, controllers });
  });
  if (isMade && canEnter(run)) return run;
  closeRun(run);
  return null;
}

/** Removes the cgroups of giros that are gone, where this one would make its own, once nothing is in them. */
export function removeLeftGroups(): void {
  const here = findCgroups();
  if (here.kind !== 'none') sweep(here.hierarchies);
}

/** What others may have left there that are gone. Only what is empty can be removed at all. */
function sweep(hierarchies: readonly Hierarchy[]): void {
  for (const { folder } of hierarchies) {
    for (const name of foldersIn(folder)) {
      const mark = parseRunGroupName(name);
      if (mark !== null && isOwnerDead(mark)) removeGroup(`${folder}/${name}`);
    }
  }
}

/** Nothing but trying tells whether a process can go in. */
function canEnter(run: RunGroup): boolean {
  const cell = openCell(run, 'probe', { processes: 16, memoryBytes: null });
  if (cell === null) return false;
  const [file, ...args] = cell.entering(['/bin/sh', '-c', 'cat /proc/self/cgroup'], {});
  const { stdout }: { stdout: unknown } = spawnSync(file, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 5_000,
  });
  cell.close();
  return typeof stdout === 'string' && stdout.includes('/probe');
}

function openCell(run: RunGroup, name: string, limits: ProcessLimits): Cell | null {
  const groups = run.hierarchies.map((one) => ({ ...one, folder: `${one.folder}/${name}` }));
  if (!groups.every(({ folder }) => makeGroup(folder))) {
    removeAll(groups);
    return null;
  }
  for (const group of groups) limit(group, limits);
  const members = (): readonly number[] => [...new Set(groups.flatMap(({ folder }) => allIn(folder)))];
  return {
    entering: (argv, environment) => entering(entrances(run, groups), argv, environment),
    members,
    kill() {
      for (const { folder, controllers } of groups) {
        if (controllers.includes('pids')) write(`${folder}/pids.max`, '0');
        write(`${folder}/cgroup.kill`, '1');
      }
    },
    met: () => metBy(run, groups, limits),
    close: () => {
      removeAll(groups);
    },
  };
}

/**
 * Version 1 has `tasks`, which is told of one thread: a shell has no other, and moving all of a process waits for every
 * processor. It is written by a shell, which is what goes in.
 */
function entrances({ here }: RunGroup, groups: readonly Hierarchy[]): readonly string[] {
  return groups.map(({ folder }) => `${folder}/${here.kind === 'v1' ? 'tasks' : 'cgroup.procs'}`);
}

function entering(
  files: readonly string[],
  argv: readonly [string, ...string[]],
  environment: Environment,
): readonly [string, ...string[]] {
  // Shells add these.
  const added = ['PWD', 'OLDPWD', 'SHLVL'].filter((name) => environment[name] === undefined);
  const moves = files.map((file) => `echo 0 >${shellWord(file)}`);
  const script = `{ ${moves.join('; ')}; } 2>/dev/null; unset ${added.join(' ')}; exec "$@"`;
  return ['/bin/sh', '-c', script, 'sh', ...argv];
}

function metBy(run: RunGroup, groups: readonly Hierarchy[], limits: ProcessLimits): string | null {
  for (const { folder, controllers } of groups) {
    const isSecond = run.here.kind === 'v2';
    if (controllers.includes('memory')) {
      const kills = countOf(`${folder}/${isSecond ? 'memory.events' : 'memory.oom_control'}`, 'oom_kill');
      if (kills > 0) return `out of memory${memoryLimit(run, { folder, limits })}`;
    }
    if (controllers.includes('pids') && countOf(`${folder}/pids.events`, 'max') > 0)
      return `too many processes (limit ${String(limits.processes)})`;
  }
  return null;
}

function memoryLimit(
  run: RunGroup,
  { folder, limits }: { readonly folder: string; readonly limits: ProcessLimits },
): string {
  const isMet = (group: string, bytes: number): boolean =>
    run.here.kind === 'v2' ? countOf(`${group}/memory.events`, 'max') > 0 : wasUsed(group, bytes);
  if (limits.memoryBytes !== null && isMet(folder, limits.memoryBytes))
    return ` (limit ${formatMemory(limits.memoryBytes)})`;
  if (run.hierarchies.some((one) => one.controllers.includes('memory') && isMet(one.folder, run.memoryBytes)))
    return ` (limit ${formatMemory(run.memoryBytes)} for all agents and gates together)`;
  return ' (the machine has no more)';
}

/** Version 1 counts how often a limit was met, but some kernels only tell the most that was ever used. */
function wasUsed(group: string, bytes: number): boolean {
  const isCounted = ['memory.failcnt', 'memory.memsw.failcnt'].some((name) => Number(textOf(`${group}/${name}`)) > 0);
  return isCounted || Number(textOf(`${group}/memory.max_usage_in_bytes`)) > bytes - chargedAhead;
}

/** Memory is counted in portions. */
const chargedAhead = 1024 ** 2;

/** Shows bytes of memory as they are written in giro.toml: `8 GB`, `512 MB`. */
function formatMemory(bytes: number): string {
  const megabytes = bytes / 1024 ** 2;
  if (megabytes < 1024) return `${String(Math.round(megabytes * 10) / 10)} MB`;
  return `${String(Math.round(megabytes / 102.4) / 10)} GB`;
}

function countOf(file: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(textOf(file))?.[1] ?? 0);
}

function limit({ folder, controllers }: Hierarchy, { processes, memoryBytes }: ProcessLimits): void {
  if (controllers.includes('pids')) write(`${folder}/pids.max`, String(processes));
  if (controllers.includes('memory') && memoryBytes !== null) limitMemory(folder, memoryBytes);
}

/** Each of these files is of one version; swap is counted by itself in version 2, together with memory in version 1. */
function limitMemory(folder: string, bytes: number): void {
  const swap = Math.floor(swapBytes() / 2);
  write(`${folder}/memory.max`, String(bytes));
  write(`${folder}/memory.swap.max`, String(swap));
  write(`${folder}/memory.limit_in_bytes`, String(bytes));
  write(`${folder}/memory.memsw.limit_in_bytes`, String(bytes + swap));
}

function swapBytes(): number {
  return Number(/^SwapTotal:\s+(\d+) kB$/m.exec(textOf('/proc/meminfo'))?.[1] ?? 0) * 1024;
}

/** What giro may have at most itself, where its own cgroup says less than the machine. */
function machineMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** Of all of a run: never more than giro's own cgroup may have. */
function mostProcesses(here: RunGroup['here']): number {
  const own = here.kind === 'v2' ? here.processes : undefined;
  return Math.min(halfOfNumbers(), own ?? Infinity);
}

function halfOfNumbers(): number {
  const counts = ['pid_max', 'threads-max'].map((name) => Number(textOf(`/proc/sys/kernel/${name}`)));
  return Math.floor(Math.min(32_768, ...counts.filter((count) => count > 0)) / 2);
}

/** Hands the controllers down to the children of a cgroup of version 2. */
function handDown({ folder, controllers }: Hierarchy): boolean {
  return write(`${folder}/cgroup.subtree_control`, controllers.map((name) => `+${name}`).join(' '));
}

const selfName = 'giro-self';

function prepare({ hierarchies: [hierarchy], first }: Extract<CgroupsHere, { kind: 'v2' }>): boolean {
  if (first === 'nothing') return true;
  if (first === 'hand-down') return handDown(hierarchy);
  const self = `${hierarchy.folder}/${selfName}`;
  if (!makeGroup(self)) return false;
  // Whatever is started meanwhile makes it fail once.
  for (let tries = 0; tries < 5; tries += 1) {
    for (const pid of ownProcessesIn(hierarchy.folder)) write(`${self}/cgroup.procs`, String(pid));
    if (handDown(hierarchy)) return true;
  }
  leaveSelf(hierarchy);
  return false;
}

function leaveSelf({ folder, controllers }: Hierarchy): void {
  write(`${folder}/cgroup.subtree_control`, controllers.map((name) => `-${name}`).join(' '));
  const self = `${folder}/${selfName}`;
  for (const pid of processesIn(self)) write(`${folder}/cgroup.procs`, String(pid));
  removeGroup(self);
}

function closeRun({ here, hierarchies }: RunGroup): void {
  removeAll(hierarchies);
  if (here.kind === 'v2' && here.first === 'move') leaveSelf(here.hierarchies[0]);
}

function removeAll(groups: readonly Hierarchy[]): void {
  for (const { folder } of groups) removeGroup(folder);
}

/** A cgroup with what may be below it; one with processes stays. */
function removeGroup(folder: string): void {
  for (const name of foldersIn(folder)) removeGroup(`${folder}/${name}`);
  try {
    rmdirSync(folder);
  } catch {
    // Somebody is in it, or it is gone.
  }
}

function allIn(folder: string): readonly number[] {
  return [...processesIn(folder), ...foldersIn(folder).flatMap((name) => allIn(`${folder}/${name}`))];
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    return [];
  }
}

function makeGroup(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

function write(file: string, text: string): boolean {
  try {
    writeFileSync(file, text, { flag: 'r+' });
    return true;
  } catch {
    return false;
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
