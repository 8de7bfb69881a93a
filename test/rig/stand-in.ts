/**
 * Agents and gates played by the test: a real program, started by real code, that connects back, says how it was started and
 * does what the test tells it. Waiting is for what happens, never for time.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { parseProcessStat } from '../../src/platform/identity.js';
import { temporaryFolder } from './temp.js';
import type { TemporaryFolder } from './temp.js';

const program = fileURLToPath(new URL('stand-in-program.mjs', import.meta.url));
/** Far above anything a test waits for: it only turns a hang into a message. */
const patienceMs = 30_000;

/** What a shell command run by a stand-in did. */
export interface ShellResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Hello {
  readonly name: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly pid: number;
}

type Message =
  | Hello
  | { readonly signal: string }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

/** One process that is being played. */
export class Invocation {
  readonly name: string;
  /** Arguments after those of the stand-in itself. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly pid: number;
  /** Resolves when the process is gone, however that came. */
  readonly ended: Promise<void>;
  readonly #socket: Socket;
  readonly #answers = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  readonly #signals: string[] = [];
  readonly #signalWatchers = new Set<() => void>();
  #nextId = 1;
  #isEnded = false;
  #mayEnd = false;

  constructor(socket: Socket, hello: Hello) {
    this.#socket = socket;
    this.name = hello.name;
    this.argv = hello.argv.slice(hello.argv[2] === '--no-stdin' ? 3 : 2);
    this.cwd = hello.cwd;
    this.env = hello.env;
    this.stdin = hello.stdin;
    this.pid = hello.pid;
    this.ended = new Promise((resolve) => {
      socket.on('close', () => {
        this.#isEnded = true;
        for (const answer of this.#answers.values()) answer.reject(new Error(`${this.name} ended before it answered`));
        resolve();
      });
    });
  }

  /** Whether the process is gone. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether the test told it to end. */
  get mayEnd(): boolean {
    return this.#mayEnd;
  }

  /** Signals it got since it was told to ignore them. */
  get signals(): readonly string[] {
    return this.#signals;
  }

  /** Writes files, relative to its folder; null removes one. */
  async write(files: Readonly<Record<string, string | null>>): Promise<void> {
    await this.#tell('write', { files });
  }

  /** Reads a file, relative to its folder. */
  async read(path: string): Promise<string> {
    return (await this.#tell('read', { path })) as string;
  }

  /** Runs a shell command in its folder and environment and fails when that does. */
  async run(command: string): Promise<ShellResult> {
    const result = await this.tryRun(command);
    if (result.code !== 0) throw new Error(`${command}: exit ${String(result.code)}\n${result.stdout}${result.stderr}`);
    return result;
  }

  /** Runs a shell command and says how it went. */
  async tryRun(command: string): Promise<ShellResult> {
    return (await this.#tell('run', { command })) as ShellResult;
  }

  /** Starts a shell command that is left running in its process group; returns its number. */
  async start(command: string): Promise<number> {
    return (await this.#tell('start', { command })) as number;
  }

  /** Prints to its stdout or stderr. */
  async print(text: string, to: 'stdout' | 'stderr' = 'stdout'): Promise<void> {
    await this.#tell('print', { text, to });
  }

  /** Makes it survive a signal. */
  async ignore(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.#tell('ignore', { signal });
  }

  /** Resolves when an ignored signal has come. */
  async signalled(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    while (!this.#signals.includes(signal)) {
      await new Promise<void>((resolve) => this.#signalWatchers.add(resolve));
    }
  }

  /** Ends it with an exit code. */
  async exit(code = 0): Promise<void> {
    await this.#end('exit', { code });
  }

  /** Ends it by a signal from itself. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#end('kill', { signal });
  }

  /** Takes a message of the program. */
  receive(message: Exclude<Message, Hello>): void {
    if ('signal' in message) {
      this.#signals.push(message.signal);
      this.#signalWatchers.forEach((resolve) => {
        resolve();
      });
      this.#signalWatchers.clear();
      return;
    }
    const answer = this.#answers.get(message.id);
    this.#answers.delete(message.id);
    if ('error' in message) answer?.reject(new Error(message.error));
    else answer?.resolve(message.value);
  }

  /** Takes its connection away, upon which it kills itself. */
  abandon(): void {
    this.#socket.destroy();
  }

  async #end(command: string, parameters: object): Promise<void> {
    this.#mayEnd = true;
    await this.#tell(command, parameters).catch(() => undefined);
    await this.ended;
  }

  #tell(command: string, parameters: object): Promise<unknown> {
    if (this.#isEnded) return Promise.reject(new Error(`${this.name} has ended; it cannot ${command}`));
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#answers.set(id, { resolve, reject });
      this.#socket.write(`${JSON.stringify({ id, command, parameters })}\n`);
    });
  }
}

type Handler = (call: Invocation) => Promise<void> | void;

/** All stand-ins of one test. */
export class StandIn {
  readonly #server: Server;
  readonly #socketPath: string;
  readonly #folder: TemporaryFolder;
  readonly #calls: Invocation[] = [];
  readonly #unread: Invocation[] = [];
  readonly #watchers = new Set<() => void>();
  readonly #handlers = new Map<string, Handler>();
  readonly #playing = new Set<Promise<void>>();
  readonly #failures: unknown[] = [];

  private constructor(server: Server, socketPath: string, folder: TemporaryFolder) {
    this.#server = server;
    this.#socketPath = socketPath;
    this.#folder = folder;
  }

  /** Opens the socket that stand-ins connect to. */
  static async open(): Promise<StandIn> {
    const folder = await temporaryFolder();
    const socketPath = join(folder.path, 's');
    const server = createServer();
    const standIn = new StandIn(server, socketPath, folder);
    server.on('connection', (socket) => {
      standIn.#connect(socket);
    });
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    return standIn;
  }

  /** Program and arguments of a stand-in, to be configured as an agent's or a gate's command. */
  command(name: string, options: { readonly readsStdin?: boolean } = {}): [string, ...string[]] {
    const more = options.readsStdin === false ? ['--no-stdin'] : [];
    return [process.execPath, program, this.#socketPath, name, ...more];
  }

  /** The same as a shell command line. */
  shellCommand(name: string, options: { readonly readsStdin?: boolean } = {}): string {
    return this.command(name, options)
      .map((word) => `'${word}'`)
      .join(' ');
  }

  /** How often each was started. */
  get counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { name } of this.#calls) counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  }

  /** Waits for the next start of a stand-in that the test has not seen. */
  async nextInvocation(name: string): Promise<Invocation> {
    const timeout = AbortSignal.timeout(patienceMs);
    for (;;) {
      const index = this.#unread.findIndex((call) => call.name === name);
      const [call] = index === -1 ? [] : this.#unread.splice(index, 1);
      if (call !== undefined) return call;
      if (timeout.aborted) throw new Error(`${name} was not started; so far: ${JSON.stringify(this.counts)}`);
      await this.#change(timeout);
    }
  }

  /** Plays every start of a stand-in; one that is still alive when the handler is done exits with 0. */
  on(name: string, handler: Handler): void {
    this.#handlers.set(name, handler);
    for (const call of this.#unread.filter((one) => one.name === name)) {
      this.#unread.splice(this.#unread.indexOf(call), 1);
      this.#play(call, handler);
    }
  }

  /** Ends everything; fails when a start was not seen, a process is still alive, or a handler failed. */
  async close(): Promise<void> {
    const alive = this.#calls.filter((call) => !call.isEnded && !call.mayEnd && isRunning(call.pid));
    const problems = [
      ...this.#unread.map((call) => `${call.name} was started and not looked at`),
      ...alive
        .filter((call) => !this.#unread.includes(call))
        .map((call) => `${call.name} (${String(call.pid)}) is still alive`),
    ];
    alive.forEach((call) => {
      call.abandon();
    });
    await Promise.all([...this.#playing, ...this.#calls.map((call) => call.ended)]);
    await new Promise((resolve) => this.#server.close(resolve));
    await this.#folder.remove();
    if (problems.length > 0) throw new Error(`stand-ins: ${problems.join('; ')}`);
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  #connect(socket: Socket): void {
    let call: Invocation | null = null;
    const lines = createInterface({ input: socket });
    // Its process was killed (readline passes the error on); 'close' follows.
    for (const emitter of [socket, lines]) emitter.on('error', () => undefined);
    lines.on('line', (line) => {
      const message = JSON.parse(line) as Message;
      if (!('argv' in message)) {
        call?.receive(message);
        return;
      }
      call = new Invocation(socket, message);
      this.#calls.push(call);
      this.#dispatch(call);
    });
  }

  #dispatch(call: Invocation): void {
    const handler = this.#handlers.get(call.name);
    if (handler !== undefined) {
      this.#play(call, handler);
      return;
    }
    this.#unread.push(call);
    this.#watchers.forEach((resolve) => {
      resolve();
    });
    this.#watchers.clear();
  }

  #play(call: Invocation, handler: Handler): void {
    const playing = (async () => {
      try {
        await handler(call);
        if (!call.isEnded) await call.exit(0);
      } catch (error) {
        // Killed in the middle of its part: that is the code under test at work, not a failure of the handler.
        if (call.isEnded) return;
        this.#failures.push(error);
        await call.exit(99);
      }
    })();
    this.#playing.add(playing);
    void playing.finally(() => this.#playing.delete(playing));
  }

  #change(timeout: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#watchers.add(resolve);
      timeout.addEventListener('abort', () => {
        resolve();
      });
    });
  }
}

/** One that has ended and was not yet reaped still answers to `kill`; where there is a /proc, that tells. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return (
      !existsSync('/proc/self/stat') ||
      parseProcessStat(readFileSync(`/proc/${String(pid)}/stat`, 'latin1')).state !== 'Z'
    );
  } catch {
    return false;
  }
}
