/**
 * Plain `spawn` for git plumbing, which is hot: output in memory, the exit code as data; and long-lived children spoken to
 * over pipes (`git cat-file --batch`): one process start for thousands of answers.
 */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { signalGroup } from './group.js';
import { Inbox } from './inbox.js';
import { keepAlive, startPiped } from './piped.js';
import type { PlumbingRequest } from './piped.js';

/** A command to run to its end. */
export interface PlumbingRun extends PlumbingRequest {
  readonly input?: string | Uint8Array;
  /** Beyond it output is cut and the command ended. */
  readonly maxBytes?: number;
  /** Beyond it the command is ended with all it started; no limit when absent. */
  readonly timeoutMs?: number;
}

/** How a plumbing command ended. */
export interface PlumbingResult {
  /** Null: ended by a signal, cut at `maxBytes`, or not started at all (`stderr` says why). */
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

const defaultMaxBytes = 512 * 1024 * 1024;

/** How much of stderr is kept. */
export const maxStderrBytes = 64 * 1024;

/** How long a pipe that a left-over daemon holds open may be silent once the command itself has ended. */
const drainMs = 1_000;

/** What stderr ends with when a command had no end in its time. */
export function timeUp(timeoutMs: number): string {
  return `no end within ${String(Math.round(timeoutMs / 1000))} s`;
}

/** Runs a command to its end; never rejects. */
export function runPlumbing(request: PlumbingRun): Promise<PlumbingResult> {
  return new Promise((resolve) => {
    const child = startPiped(request, (reason) => {
      resolve({ code: null, signal: null, stdout: Buffer.alloc(0), stderr: reason });
    });
    if (child === null) return;
    const maxBytes = request.maxBytes ?? defaultMaxBytes;
    const stdout = new Collector(maxBytes);
    const stderr = new Collector(maxStderrBytes);
    const drain = drainTimer(child);
    const limit = limitTimer(request, child);
    child.stdout.on('data', (chunk: Buffer) => {
      drain.touch();
      stdout.add(chunk);
      if (stdout.isCut) cutOff(child);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      drain.touch();
      stderr.add(chunk);
    });
    child.on('exit', drain.start);
    child.on('close', (code, signal) => {
      drain.stop();
      const late = limit.stop();
      const cut = stdout.isCut || late !== null;
      const said = `${stderr.bytes().toString('utf8')}${late ?? ''}`;
      resolve({ code: cut ? null : code, signal, stdout: stdout.bytes(), stderr: said });
    });
    child.stdin.end(request.input ?? '');
  });
}

interface LimitTimer {
  /** Says what happened when the time was up before. */
  readonly stop: () => string | null;
}

function limitTimer({ timeoutMs }: PlumbingRun, child: ChildProcessWithoutNullStreams): LimitTimer {
  if (timeoutMs === undefined) return { stop: () => null };
  let late: string | null = null;
  const timer = setTimeout(() => {
    late = timeUp(timeoutMs);
    cutOff(child);
  }, timeoutMs);
  return {
    stop() {
      clearTimeout(timer);
      return late;
    },
  };
}

/** The whole group: what a command has started may be what writes. */
function cutOff(child: ChildProcessWithoutNullStreams): void {
  if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
  child.stdout.destroy();
}

/** A long-lived child. Reads are answered in the order they were asked. */
export interface Conversation {
  /** Sends bytes; silently lost when the child has ended, which the next read tells. */
  write(data: string | Uint8Array): void;
  /** The next line without its line end; null when the child has ended. */
  readonly readLine: () => Promise<string | null>;
  /** Exactly so many bytes; rejects when the child ends before. */
  readBytes(count: number): Promise<Buffer>;
  /** Everything up to a mark that is the last the child says for now, without it; null when the child has ended. */
  readUntil(mark: Uint8Array): Promise<Buffer | null>;
  /** Closes its input and waits for its end. */
  close(): Promise<void>;
  /** The last it said on stderr. */
  readonly stderrTail: () => string;
}

/** How long a child may take to end once its input is closed. */
export const closeMs = 2_000;
const stderrTailLength = 4_096;

/** Starts a child to speak with. It keeps giro alive only while a read waits for it. */
export function startConversation(request: PlumbingRequest): Conversation {
  const name = [request.file, ...request.args].join(' ');
  let reason = '';
  let stderr = '';
  const inbox = new Inbox((bytes) => new Error(`${name} ${reason}; ${String(bytes)} bytes were waited for\n${stderr}`));
  const child = startPiped(request, (why) => {
    reason = `did not start (${why})`;
    inbox.end();
  });
  if (child === null) return silence(inbox, () => reason);
  const drain = drainTimer(child);
  const closed = new Promise<void>((resolve) => {
    child.on('close', (code, signal) => {
      reason = signal === null ? `ended with exit code ${String(code)}` : `was ended by ${signal}`;
      drain.stop();
      inbox.end();
      resolve();
    });
  });
  child.on('exit', drain.start);
  child.stdout.on('data', (chunk: Buffer) => {
    drain.touch();
    inbox.add(chunk);
  });
  child.stderr.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString('utf8')).slice(-stderrTailLength)));
  inbox.onWaiting((isWaiting) => {
    keepAlive(child, isWaiting);
  });
  return {
    write: (data) => void child.stdin.write(data),
    readLine: () => inbox.line(),
    readBytes: (count) => inbox.bytes(count),
    readUntil: (mark) => inbox.before(mark),
    stderrTail: () => stderr,
    close: async () => {
      keepAlive(child, true);
      child.stdin.end();
      const timer = setTimeout(() => cutOff(child), closeMs);
      await closed;
      clearTimeout(timer);
    },
  };
}

function silence(inbox: Inbox, stderrTail: () => string): Conversation {
  return {
    write: () => undefined,
    readLine: () => inbox.line(),
    readBytes: (count) => inbox.bytes(count),
    readUntil: (mark) => inbox.before(mark),
    stderrTail,
    close: () => Promise.resolve(),
  };
}

/** Keeps the first `limit` bytes. */
class Collector {
  readonly #chunks: Buffer[] = [];
  readonly #limit: number;
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isCut(): boolean {
    return this.#size > this.#limit;
  }

  add(chunk: Buffer): void {
    if (this.#size < this.#limit) this.#chunks.push(chunk.subarray(0, this.#limit - this.#size));
    this.#size += chunk.length;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

interface DrainTimer {
  /** The command has ended; its pipes are destroyed once they are silent. */
  readonly start: () => void;
  readonly touch: () => void;
  readonly stop: () => void;
}

function drainTimer(child: ChildProcessWithoutNullStreams): DrainTimer {
  let timer: NodeJS.Timeout | null = null;
  let touched = 0;
  const look = (): void => {
    const before = touched;
    // Not before the loop has looked at the pipes once more: it may have been busy all this time.
    setImmediate(() => {
      if (touched !== before) return;
      child.stdout.destroy();
      child.stderr.destroy();
    });
  };
  return {
    start() {
      timer = setTimeout(look, drainMs);
    },
    touch() {
      touched += 1;
      timer?.refresh();
    },
    stop() {
      if (timer !== null) clearTimeout(timer);
    },
  };
}
