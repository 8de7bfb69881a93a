/** Named pipes between a test and the shell scripts that play its agents: each waits for the other, and nobody looks again and again. */
import { execFile } from 'node:child_process';
import { constants, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Socket } from 'node:net';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';

/** Where scripts wait, by `: < "$HOME/go"`, until the test lets them go on. */
export interface Barrier {
  /** Lets everybody go on who waits, and everybody who comes later. */
  open(): Promise<void>;
}

/** Where scripts say that they got somewhere, by `echo here > "$HOME/ready"`. */
export interface Bell {
  /** Waits until so many lines came in all, and gives them. */
  rung(count: number): Promise<readonly string[]>;
}

/** Makes a barrier at a path. */
export async function makeBarrier(path: string): Promise<Barrier> {
  await makePipe(path);
  return {
    async open() {
      // Opened both ways it waits for nobody, and is somebody who writes for all who want to read.
      const handle = await open(path, constants.O_RDWR);
      onTestFinished(() => handle.close());
    },
  };
}

/** Makes a bell at a path. */
export async function makeBell(path: string): Promise<Bell> {
  await makePipe(path);
  // The socket closes it.
  const socket = new Socket({ fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK), readable: true });
  let text = '';
  const waiting = new Set<() => void>();
  socket.setEncoding('utf8').on('data', (more: string) => {
    text += more;
    for (const wake of waiting) wake();
  });
  onTestFinished(() => {
    socket.destroy();
  });
  return {
    async rung(count) {
      for (;;) {
        const lines = text.split('\n').slice(0, -1);
        if (lines.length >= count) return lines;
        await new Promise<void>((wake) => waiting.add(wake));
      }
    },
  };
}

async function makePipe(path: string): Promise<void> {
  await promisify(execFile)('mkfifo', [path]);
}
