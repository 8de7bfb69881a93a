/** The files a child reads and writes: handed over by descriptor, so that nothing of it passes through giro. */
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from './folders.js';

/** Where a process reads from and writes to. */
export interface StreamsRequest {
  readonly input?: string;
  readonly logFile: string;
  readonly outputFile?: string;
}

/** The open files of one process, as descriptors. */
export interface Streams {
  readonly input: number | null;
  readonly log: number;
  readonly output: number;
  /** What the log held before. */
  readonly before: number;
}

/** Opens what a process reads and writes; rejects with everything closed again. */
export async function openStreams(request: StreamsRequest): Promise<Streams> {
  const opened: number[] = [];
  const add = (fd: number): number => {
    opened.push(fd);
    return fd;
  };
  try {
    const log = add(await openOutput(request.logFile, 0));
    const output =
      request.outputFile === undefined ? log : add(await openOutput(request.outputFile, constants.O_TRUNC));
    const input = request.input === undefined ? null : add(openInput(request.logFile, request.input));
    return { input, log, output, before: fstatSync(log).size };
  } catch (error) {
    opened.forEach((fd) => {
      closeSync(fd);
    });
    throw error;
  }
}

const outputFlags =
  constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Always in append mode: a script that writes to `/dev/stderr` opens the file anew and must not overwrite its start. A pipe
 * that somebody put there is not waited for, and refused.
 */
async function openOutput(path: string, more: number): Promise<number> {
  await makeFolder(dirname(path));
  const fd = openSync(path, outputFlags | more, 0o644);
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw new Error(`${path} is not a regular file`);
}

/**
 * The input is a file that is already removed, not a pipe: a child that never reads it blocks nobody and fails nothing, a
 * child gets all of it even when giro dies, and `/dev/stdin` can be opened (on Node's pipes, which are sockets, it cannot).
 */
function openInput(logFile: string, input: string): number {
  const path = `${logFile}.${randomBytes(6).toString('hex')}.stdin`;
  const writer = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    const bytes = Buffer.from(input);
    for (let done = 0; done < bytes.length;) done += writeSync(writer, bytes, done);
    return openSync(path, constants.O_RDONLY);
  } finally {
    closeSync(writer);
    rmSync(path, { force: true });
  }
}

/** Counts the bytes the process has written so far. */
export function outputOf({ log, output, before }: Streams): number {
  const grown = fstatSync(log).size - before;
  return output === log ? grown : grown + fstatSync(output).size;
}

/** Closes giro's side; the process keeps its own. */
export function closeStreams({ input, log, output }: Streams): void {
  for (const fd of new Set([input, log, output])) if (fd !== null) closeSync(fd);
}

const descriptorsOfASpawn = 4;

/**
 * Looks whether descriptors are left for a spawn. Without them Node emits an error on a child that has no streams, on which
 * execa 9 trips: its own throw comes first and leaves that error to end giro.
 */
export function hasRoomToSpawn(): boolean {
  const spare: number[] = [];
  try {
    while (spare.length < descriptorsOfASpawn) spare.push(openSync('/dev/null', 'r'));
    return true;
  } catch {
    return false;
  } finally {
    spare.forEach((fd) => {
      closeSync(fd);
    });
  }
}
