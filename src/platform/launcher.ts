/**
 * Starts short commands from small shells instead of from giro itself. To start a process Node copies its own page tables,
 * and nothing else happens meanwhile: that costs giro several times what the command does, and more the bigger giro is. A
 * shell of one megabyte does the same in no time.
 *
 * 1. A shell runs one command at a time; what the command said is what came before a mark, a random word of this call that
 *    only the shell is told.
 * 2. A shell that did not get to its mark, because its command was ended at a limit or the shell itself was, is never used
 *    again, and its whole group is gone.
 * 3. Nothing of a request is read as shell language: every word is quoted. What cannot be quoted is started directly.
 *
 * Only for commands that leave nothing running behind: it could write into the answer of the next.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Environment } from './environment.js';
import { signalGroup } from './group.js';
import { keepAlive, startPiped } from './piped.js';
import { closeMs, maxStderrBytes, runPlumbing, timeUp } from './plumbing.js';
import type { PlumbingResult, PlumbingRun } from './plumbing.js';

/** Runs commands to their end, as `runPlumbing` does. */
export interface Launcher {
  run(request: PlumbingRun): Promise<PlumbingResult>;
  /** Waits for what runs, and ends the shells. */
  close(): Promise<void>;
}

const shellPath = '/bin/sh';
const maxShells = 32;

/** Makes a launcher for commands whose environment is the given one and more; shells start when they are needed. */
export function createLauncher(environment: Environment): Launcher {
  return new ShellPool(environment);
}

class ShellPool implements Launcher {
  readonly #environment: Environment;
  readonly #shells = new Set<Shell>();
  readonly #idle: Shell[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #running = new Set<Promise<PlumbingResult>>();

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  async run(request: PlumbingRun): Promise<PlumbingResult> {
    const running = this.#run(request);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #run(request: PlumbingRun): Promise<PlumbingResult> {
    const line = commandLine(request, this.#environment);
    const shell = line === null ? null : await this.#take();
    if (line === null || shell === null) return runPlumbing(request);
    const result = await shell.run(line, request);
    if (shell.isAlive) {
      this.#idle.push(shell);
      this.#waiting.shift()?.();
    }
    return result;
  }

  /** A shell that nobody uses; null when none can be started. */
  async #take(): Promise<Shell | null> {
    for (;;) {
      const idle = this.#idle.pop();
      if (idle !== undefined) return idle;
      if (this.#shells.size < maxShells) break;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    const child = startPiped({ file: shellPath, args: [], env: this.#environment, cwd: '/' }, () => undefined);
    if (child === null) return null;
    const shell = new Shell(child, () => {
      this.#shells.delete(shell);
      const at = this.#idle.indexOf(shell);
      if (at >= 0) this.#idle.splice(at, 1);
      this.#waiting.shift()?.();
    });
    this.#shells.add(shell);
    return shell;
  }

  async close(): Promise<void> {
    await Promise.all(this.#running);
    await Promise.all([...this.#shells].map((shell) => shell.close()));
  }
}

/** The request as a line for a shell; null when it is not to be had that way. */
function commandLine({ file, args, env, cwd, input }: PlumbingRun, base: Environment): string | null {
  if (input !== undefined || Object.keys(base).some((name) => env[name] === undefined)) return null;
  const added = Object.entries(env).filter(([name, value]) => base[name] !== value);
  const words = [cwd, file, ...args, ...added.map(([, value]) => value)];
  if (words.some((word) => word.includes('\0')) || !added.every(([name]) => isVariable.test(name))) return null;
  const variables = added.map(([name, value]) => `${name}=${quoted(value)} `).join('');
  return `cd -P ${quoted(cwd)} && ${variables}${[file, ...args].map(quoted).join(' ')} </dev/null`;
}

const isVariable = /^[A-Za-z_][A-Za-z0-9_]*$/;

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

interface Call {
  readonly stdout: MarkedStream;
  readonly stderr: MarkedStream;
  readonly maxBytes: number;
  readonly settle: (result: PlumbingResult) => void;
}

/** One shell that takes commands on its input. */
class Shell {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #gone: () => void;
  readonly #closed: Promise<void>;
  #call: Call | null = null;
  #alive = true;

  constructor(child: ChildProcessWithoutNullStreams, gone: () => void) {
    this.#child = child;
    this.#gone = gone;
    child.stdout.on('data', (chunk: Buffer) => {
      this.#call?.stdout.add(chunk);
      this.#look();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      this.#call?.stderr.add(chunk);
      this.#look();
    });
    child.on('exit', () => {
      this.#retire();
    });
    this.#closed = new Promise((resolve) => {
      // Not before its pipes are read to their end: it may have said all that was waited for.
      child.on('close', () => {
        this.#end('the shell that ran it was ended');
        resolve();
      });
    });
    // What keeps giro going is a call, not a shell that waits for one.
    keepAlive(child, false);
  }

  get isAlive(): boolean {
    return this.#alive;
  }

  run(line: string, { maxBytes = Number.MAX_SAFE_INTEGER, timeoutMs }: PlumbingRun): Promise<PlumbingResult> {
    return new Promise((resolve) => {
      const mark = nextMark();
      const timer = timeoutMs === undefined ? null : setTimeout(() => this.#end(timeUp(timeoutMs)), timeoutMs);
      this.#call = {
        stdout: new MarkedStream(mark, Number.MAX_SAFE_INTEGER),
        stderr: new MarkedStream(mark, maxStderrBytes),
        maxBytes,
        settle: (result) => {
          busy(-1);
          if (timer !== null) clearTimeout(timer);
          resolve(result);
        },
      };
      busy(1);
      this.#child.stdin.write(`${line}; printf '\\n%s %s\\n' ${mark} "$?"; printf '\\n%s 0\\n' ${mark} >&2\n`);
    });
  }

  #look(): void {
    const call = this.#call;
    if (call === null) {
      this.#end(''); // Nobody was asked, so nobody should answer.
    } else if (call.stdout.status !== null && call.stderr.status !== null) {
      this.#call = null;
      call.settle(resultOf(call, call.stdout.status));
    } else if (call.stdout.size > call.maxBytes + markRoom) {
      this.#end('');
    }
  }

  /** Takes no call any more; a command that it left running is ended. */
  #retire(): void {
    if (!this.#alive) return;
    this.#alive = false;
    if (this.#child.pid !== undefined) signalGroup(this.#child.pid, 'SIGKILL');
    this.#gone();
  }

  #end(why: string): void {
    this.#retire();
    const call = this.#call;
    if (call === null) return;
    this.#call = null;
    const stdout = call.stdout.bytes().subarray(0, call.maxBytes);
    call.settle({ code: null, signal: 'SIGKILL', stdout, stderr: `${call.stderr.bytes().toString()}${why}` });
  }

  async close(): Promise<void> {
    if (!this.#alive) return;
    keepAlive(this.#child, true);
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#end(''), closeMs);
    await this.#closed;
    clearTimeout(timer);
  }
}

const seed = randomBytes(16).toString('hex');
let marks = 0;

/** Nobody but the shells of this process can know the seed. */
function nextMark(): string {
  marks += 1;
  return `${seed}-${String(marks)}`;
}

let calls = 0;
let pulse: NodeJS.Timeout | null = null;

/** Keeps giro from exiting while there are calls: one timer that never matters costs less than the pipes of every shell. */
function busy(change: 1 | -1): void {
  calls += change;
  pulse ??= setInterval(() => undefined, 2 ** 30);
  if (calls > 0) pulse.ref();
  else pulse.unref();
}

/** A status above these is how a shell tells of a signal; 128 and 129 are git's own. */
const firstSignalStatus = 130;

function resultOf({ stdout, stderr, maxBytes }: Call, status: number): PlumbingResult {
  const bytes = stdout.bytes();
  const said = { stdout: bytes.subarray(0, maxBytes), stderr: stderr.bytes().toString() };
  if (bytes.length > maxBytes) return { code: null, signal: null, ...said };
  if (status < firstSignalStatus) return { code: status, signal: null, ...said };
  const signal = Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0];
  return { code: null, signal: signal ?? String(status - 128), ...said };
}

/** More than a mark takes. */
const markRoom = 64;

/** What comes before a mark, which ends the stream: a line end, the mark, a space, a number and a line end. */
class MarkedStream {
  readonly #mark: string;
  readonly #limit: number;
  readonly #chunks: Buffer[] = [];
  #tail = '';
  #markLength = 0;
  size = 0;
  /** The number behind the mark; null until it has come. */
  status: number | null = null;

  constructor(mark: string, limit: number) {
    this.#mark = `\n${mark} `;
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    if (this.size < this.#limit) this.#chunks.push(chunk);
    this.size += chunk.length;
    this.#tail = `${this.#tail}${chunk.subarray(-markRoom).toString('latin1')}`.slice(-markRoom);
    const at = this.#tail.indexOf(this.#mark);
    if (at < 0 || !this.#tail.endsWith('\n')) return;
    this.status = Number(this.#tail.slice(at + this.#mark.length, -1));
    this.#markLength = this.#tail.length - at;
  }

  /** The first bytes, up to the limit, without the mark. */
  bytes(): Buffer {
    const [first] = this.#chunks;
    const all = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    return all.subarray(0, Math.min(this.size - this.#markLength, this.#limit));
  }
}
