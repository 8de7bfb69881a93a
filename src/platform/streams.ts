/** The files a child reads and writes: handed over by descriptor, so that nothing of it passes through giro. */
import { randomBytes } from 'node:crypto';
import { closeSync, constants, openSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder } from './files.js';

/** Where a process reads from and writes to. */
export interface StreamsRequest {
  readonly input?: string;
  readonly logFile: string;
  readonly outputFile?: string;
}

/** The open files of one process. */
export interface Streams {
  readonly input: FileHandle | null;
  readonly log: FileHandle;
  readonly output: FileHandle;
  /** What the log held before. */
  readonly before: number;
}

/** Opens what a process reads and writes; rejects with everything closed again. */
export async function openStreams(request: StreamsRequest): Promise<Streams> {
  const opened: FileHandle[] = [];
  const add = (handle: FileHandle): FileHandle => {
    opened.push(handle);
    return handle;
  };
  try {
    const log = add(await openOutput(request.logFile, 0));
    const output =
      request.outputFile === undefined ? log : add(await openOutput(request.outputFile, constants.O_TRUNC));
    const input = request.input === undefined ? null : add(await openInput(request.logFile, request.input));
    return { input, log, output, before: (await log.stat()).size };
  } catch (error) {
    for (const handle of opened) await handle.close();
    throw error;
  }
}

/** Always in append mode: a script that writes to `/dev/stderr` opens the file anew and must not overwrite its start. */
async function openOutput(path: string, more: number): Promise<FileHandle> {
  await makeFolder(dirname(path));
  return open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | more, 0o644);
}

/**
 * The input is a file that is already removed, not a pipe: a child that never reads it blocks nobody and fails nothing, a
 * child gets all of it even when giro dies, and `/dev/stdin` can be opened (on Node's pipes, which are sockets, it cannot).
 */
async function openInput(logFile: string, input: string): Promise<FileHandle> {
  const path = `${logFile}.${randomBytes(6).toString('hex')}.stdin`;
  const writer = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    await writer.writeFile(input);
    return await open(path, constants.O_RDONLY);
  } finally {
    await writer.close();
    await rm(path, { force: true });
  }
}

/** Counts the bytes the process has written so far. */
export async function outputOf({ log, output, before }: Streams): Promise<number> {
  const grown = (await log.stat()).size - before;
  return output === log ? grown : grown + (await output.stat()).size;
}

/** Closes giro's side; the process keeps its own. */
export async function closeStreams({ input, log, output }: Streams): Promise<void> {
  for (const handle of new Set([input, log, output])) await handle?.close();
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
