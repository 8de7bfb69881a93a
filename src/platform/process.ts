/**
 * Agents, gates and other programs that may do anything: each in its own process group, its output in files, its end one of
 * six kinds (`Ended`).
 *
 * 1. The first reason wins: what happens while a process is being ended does not change how it ended.
 * 2. Its whole group is gone before `runProcess` resolves, however it ended; with a `mark`, so is what left the group.
 *    It is in a cgroup of its own before its program starts, where there is a `confinement` that allows one.
 * 3. No output passes through giro's memory, and no pipe is waited for: a daemon that keeps one open holds up nobody.
 * 4. No timer and no listener outlives the call.
 */
import { stat } from 'node:fs/promises';
import { resolve as resolvePath } from 'node:path';
import { execa } from 'execa';
import type { Ended } from '../event.js';
import { allowManyListeners } from './clock.js';
import type { Clock } from './clock.js';
import type { Cell, Confinement } from './confinement.js';
import type { Environment } from './environment.js';
import { emptiesWithin, endGroup, signalGroup } from './group.js';
import { isOwn } from './mark.js';
import { lookForMarked } from './marked.js';
import { membersOf, type GroupMember } from './members.js';
import { isStartable } from './startable.js';
import { endStrays, killAtOnce } from './strays.js';
import { closeStreams, hasRoomToSpawn, openStreams, outputOf } from './streams.js';
import type { Streams } from './streams.js';
import { printable } from './text.js';

/** What to run, with its limits. */
export interface ProcessRequest {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  /** The whole environment of the child; nothing is added. */
  readonly env: Environment;
  /** What the child reads from stdin, to its end; absent: stdin is empty. A child that does not read it is no error. */
  readonly input?: string;
  /** stdout and stderr are added here by file descriptor, never through giro's memory. */
  readonly logFile: string;
  /** stdout alone goes here, replacing what was there; stderr then still to `logFile`. */
  readonly outputFile?: string;
  readonly timeoutMs: number;
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /** Beyond it the process is ended as stalled; 1 GiB when absent. */
  readonly maxOutputBytes?: number;
  /** Aborted: ended as cancelled, with the reason of the abort. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Lines of `env`, `NAME=value`, that no other run has together: what has them is ended too, wherever it went (Linux). */
  readonly mark?: readonly string[];
  /** Limits what it starts together; without a `mark`, what it leaves stays there. */
  readonly confinement?: Confinement;
  /** Asked about once a second; an answer that is a text ends the process as stalled for that reason. */
  readonly watch?: () => Promise<string | null>;
}

/** How a process ended. */
export interface ProcessResult {
  readonly ended: Ended;
  readonly durationMs: number;
  /** What it had started and was still running when it exited with 0; ended since. */
  readonly left: readonly GroupMember[];
  /** Which limit of its confinement it met, in words; `null`: none. */
  readonly met: string | null;
}

const defaultMaxOutputBytes = 1024 ** 3;
const watchEveryMs = 1_000;
const measureEveryMs = 250;
/** For members of the group that outlive its leader: to end by themselves, and after SIGTERM. */
const settleMs = 100;
const leftoverGraceMs = 2_000;

/** Groups that are alive, each with the way to say why it ends. */
const living = new Map<number, { readonly interrupt: (why: Ended) => void; readonly signal: AbortSignal }>();

/** Runs a program to its end, in whichever way it comes; rejects only for a bug. */
export async function runProcess(request: ProcessRequest): Promise<ProcessResult> {
  const start = request.clock.monotonic();
  const { mark, clock, graceMs } = request;
  const left: GroupMember[] = [];
  const cell = openCell(request);
  try {
    const ended = await run(cell === null ? request : inside(cell, request), left);
    const met = cell?.met() ?? null;
    if (mark !== undefined && ended.kind !== 'could-not-start') {
      const strays = await endStrays({ mark, cell, settleMs, graceMs: Math.min(graceMs, leftoverGraceMs), clock });
      if (ended.kind === 'exited' && ended.code === 0) left.push(...strays);
    }
    return { ended, durationMs: Math.round(clock.monotonic() - start), left, met };
  } finally {
    cell?.close();
  }
}

/** What cannot be started is tried without, since it is the system that says why. */
function openCell({ confinement, argv, cwd, env }: ProcessRequest): Cell | null {
  if (confinement === undefined || argv.some((word) => word.includes('\0'))) return null;
  return isStartable(argv[0], { cwd, env }) ? confinement.open(env) : null;
}

function inside(cell: Cell, request: ProcessRequest): ProcessRequest {
  return { ...request, argv: cell.entering(request.argv, request.env) };
}

/**
 * Kills every group that `runProcess` has alive, and what carries a mark of this giro, at once and without a wait: for a second
 * interrupt and for a crash.
 */
export function endEveryProcess(): void {
  endAll(() => true);
  killAtOnce(() => lookForMarked({ isMeant: isOwn, folders: [] }).marked);
}

/** Kills what an aborted signal is ending, without the rest of its grace. */
export function endCancelled(by: AbortSignal): void {
  if (by.aborted) endAll((signal) => signal.aborted && signal.reason === by.reason);
}

function endAll(isMeant: (signal: AbortSignal) => boolean): void {
  for (const [leader, { interrupt, signal }] of living) {
    if (!isMeant(signal)) continue;
    interrupt({ kind: 'cancelled', reason: 'everything was ended at once' });
    signalGroup(leader, 'SIGKILL');
  }
}

async function run(request: ProcessRequest, left: GroupMember[]): Promise<Ended> {
  if (request.argv.some((word) => word.includes('\0'))) return couldNotStart(request, 'an argument holds a null byte');
  let streams: Streams;
  try {
    streams = await openStreams(request);
  } catch (error) {
    return couldNotStart(request, `cannot open its files: ${messageOf(error)}`);
  }
  try {
    if (request.signal.aborted) return cancelled(request.signal);
    if (!hasRoomToSpawn()) return couldNotStart(request, 'too many open files');
    const child = start(request, streams);
    if (child.pid === undefined) return couldNotStart(request, await reasonOf((await child).cause, request));
    return await supervise(child.pid, child.then(naturalEnd), { request, streams, left });
  } finally {
    closeStreams(streams);
  }
}

interface Exit {
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
}

function naturalEnd({ exitCode, signal }: Exit): Ended {
  return exitCode === undefined
    ? { kind: 'signalled', signal: signal ?? 'unknown' }
    : { kind: 'exited', code: exitCode };
}

function start(request: ProcessRequest, streams: Streams) {
  const [file, ...args] = request.argv;
  return execa(file, args, {
    cwd: request.cwd,
    env: request.env,
    extendEnv: false,
    detached: true,
    cleanup: false,
    buffer: false,
    reject: false,
    verbose: 'none',
    stdin: streams.input === null ? 'ignore' : descriptor(streams.input),
    stdout: descriptor(streams.output),
    stderr: descriptor(streams.log),
  });
}

/** execa takes any descriptor; its types name only the first ten. */
function descriptor(fd: number): 9 {
  if (!isDescriptor(fd)) throw new Error(`not a file descriptor: ${String(fd)}`);
  return fd;
}

function isDescriptor(fd: number): fd is 9 {
  return Number.isInteger(fd) && fd > 2;
}

interface Supervision {
  readonly request: ProcessRequest;
  readonly streams: Streams;
  readonly left: GroupMember[];
}

async function supervise(
  leader: number,
  exit: Promise<Ended>,
  { request, streams, left }: Supervision,
): Promise<Ended> {
  const over = new AbortController();
  const { clock, graceMs } = request;
  try {
    const interrupted = new Promise<Ended>((resolve, reject) => {
      living.set(leader, { interrupt: resolve, signal: request.signal });
      interruptions(request, streams, over.signal).forEach((one) => {
        one.then((why) => {
          if (why !== null) resolve(why);
        }, reject);
      });
    });
    const ended = await Promise.race([exit, interrupted]);
    over.abort();
    if (ended.kind === 'exited' || ended.kind === 'signalled') {
      if (await emptiesWithin(leader, settleMs)) return ended;
      if (ended.kind === 'exited' && ended.code === 0) left.push(...membersOf(leader));
      await endGroup({ leader, graceMs: Math.min(graceMs, leftoverGraceMs), clock });
    } else {
      await endGroup({ leader, graceMs, clock });
      await exit;
    }
    return ended;
  } catch (error) {
    await endGroup({ leader, graceMs: 0, clock });
    throw error;
  } finally {
    over.abort();
    living.delete(leader);
  }
}

/** Everything that may end a process before it ends itself; null: it ended first. */
function interruptions(request: ProcessRequest, streams: Streams, over: AbortSignal): readonly Promise<Ended | null>[] {
  return [
    timeUp(request, over),
    aborted(request.signal, over),
    watched(request, over),
    measured(request, streams, over),
  ];
}

async function timeUp({ clock, timeoutMs }: ProcessRequest, over: AbortSignal): Promise<Ended | null> {
  return (await tick(clock, timeoutMs, over)) ? { kind: 'timed-out', limitMs: timeoutMs } : null;
}

function aborted(signal: AbortSignal, over: AbortSignal): Promise<Ended | null> {
  allowManyListeners(signal);
  return new Promise((resolve) => {
    if (signal.aborted) resolve(cancelled(signal));
    signal.addEventListener('abort', () => resolve(cancelled(signal)), { once: true, signal: over });
    over.addEventListener('abort', () => resolve(null), { once: true });
  });
}

async function watched({ clock, watch }: ProcessRequest, over: AbortSignal): Promise<Ended | null> {
  if (watch === undefined) return null;
  while (await tick(clock, watchEveryMs, over)) {
    const reason = await watch();
    if (reason !== null) return { kind: 'stalled', reason };
  }
  return null;
}

async function measured(request: ProcessRequest, streams: Streams, over: AbortSignal): Promise<Ended | null> {
  const limit = request.maxOutputBytes ?? defaultMaxOutputBytes;
  while (await tick(request.clock, measureEveryMs, over)) {
    if (outputOf(streams) > limit) return { kind: 'stalled', reason: 'output limit' };
  }
  return null;
}

/** Waits for the next look; false when there is nothing left to look at. */
async function tick(clock: Clock, ms: number, over: AbortSignal): Promise<boolean> {
  await clock.sleep(ms, over);
  return !over.aborted;
}

function cancelled(signal: AbortSignal): Ended {
  const reason: unknown = signal.reason;
  return { kind: 'cancelled', reason: typeof reason === 'string' ? reason : messageOf(reason) };
}

function couldNotStart({ argv }: ProcessRequest, reason: string): Ended {
  return { kind: 'could-not-start', reason: `cannot start ${printable(argv[0])}: ${printable(reason)}` };
}

async function reasonOf(error: unknown, { argv, cwd }: ProcessRequest): Promise<string> {
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'ENOENT':
    case 'ENOTDIR':
      if (!(await isFolder(cwd))) return `the folder ${cwd} is not there`;
      if (!argv[0].includes('/')) return 'no such program on PATH';
      return (await exists(argv[0], cwd)) ? 'the interpreter its first line names is not there' : 'no such file';
    case 'EACCES':
      return 'permission denied; is it an executable file?';
    case 'E2BIG':
      return 'its arguments and environment are longer than the system allows';
    case 'EMFILE':
    case 'ENFILE':
      return 'too many open files';
    case 'EAGAIN':
      return 'too many processes';
    case undefined:
    default:
      return messageOf(error);
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function exists(program: string, cwd: string): Promise<boolean> {
  return stat(resolvePath(cwd, program)).then(
    () => true,
    () => false,
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
