/** Children whose input and output are pipes of giro: started without a shell, a terminal, or a throw. */
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { Socket } from 'node:net';
import type { Environment } from './environment.js';

/** What to run. */
export interface PlumbingRequest {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Environment;
  readonly cwd: string;
}

/** Starts a child with three pipes; null when it cannot be started, which `notStarted` is then told. */
export function startPiped(
  { file, args, env, cwd }: PlumbingRequest,
  notStarted: (reason: string) => void,
): ChildProcessWithoutNullStreams | null {
  const tell = (error: unknown): void => {
    notStarted(`cannot start ${file}: ${error instanceof Error ? error.message : String(error)}`);
  };
  try {
    // A session of its own: a Ctrl+C in the terminal is giro's to act on and must not end a git half-way.
    const child = spawn(file, args, { env, cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    if (child.pid === undefined) {
      child.on('error', tell);
      return null;
    }
    child.on('error', ignore);
    child.stdin.on('error', ignore); // EPIPE: it ended without reading; its exit code says the rest.
    return child;
  } catch (error) {
    tell(error); // Some failures are thrown (E2BIG), some come as an event (ENOENT).
    return null;
  }
}

function ignore(): void {
  // What matters is told by the exit.
}

/** Lets a child keep giro from exiting, or not: only one that is waited for should. */
export function keepAlive(child: ChildProcessWithoutNullStreams, alive: boolean): void {
  for (const handle of [child, child.stdin, child.stdout, child.stderr]) {
    if (handle !== child && !(handle instanceof Socket)) continue;
    if (alive) handle.ref();
    else handle.unref();
  }
}
