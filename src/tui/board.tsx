/** Puts the board on the terminal with ink, which only this file loads: keys, pace and an orderly end come from it. */
import { Box, render, useInput } from 'ink';
import type { Key } from 'ink';
import { useCallback, useEffect, useReducer } from 'react';
import type { ReactElement } from 'react';
import { namesOf } from './keys.js';
import { Session } from './session.js';
import type { BoardOptions } from './session.js';

export type { BoardOptions };

/** The board while it is up. */
export interface Board {
  /** Gives the terminal back; may be called at any time and more than once. */
  stop(): Promise<void>;
  /** Resolves when the board broke; the terminal is given back by then. Never rejects. */
  readonly failed: Promise<Error>;
}

/** Starts the board; the run goes on without it, whatever becomes of it. */
export function startBoard(options: BoardOptions): Board {
  const session = new Session(options);
  const printed: string[] = [];
  try {
    return mount(session, options, printed);
  } catch (error) {
    session.close();
    return { failed: Promise.resolve(asError(error)), stop: () => Promise.resolve() };
  }
}

function mount(session: Session, options: BoardOptions, printed: string[]): Board {
  const quiet = silenced(options.stdout, printed);
  const instance = render(<Keyboard session={session} isActive={options.stdin.isTTY} />, {
    stdout: quiet,
    stderr: quiet,
    stdin: options.stdin,
    exitOnCtrlC: false,
    maxFps: 10,
    onRender: () => session.draw(),
  });
  const failed = new Promise<Error>((resolve) => {
    const fail = (reason: unknown): void => {
      instance.unmount();
      session.close();
      resolve(asError(reason));
    };
    void session.broken.then(fail);
    instance.waitUntilExit().then(() => session.close(), fail);
  });
  return {
    failed,
    stop: async () => {
      instance.unmount();
      session.close();
      await flushed(options.stdout);
      for (const text of printed.splice(0)) options.stderr?.write(text);
    },
  };
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('the board broke', { cause: reason });
}

/** Draws nothing itself: every turn changes a box that is never seen, so that ink calls `onRender` at its own pace. */
function Keyboard({ session, isActive }: { readonly session: Session; readonly isActive: boolean }): ReactElement {
  const [turn, next] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    session.listen(next);
    // Also when the process ends without `stop`: ink unmounts then.
    return () => session.close();
  }, [session]);
  const pressed = useCallback((input: string, key: Key) => session.press(namesOf(input, key)), [session]);
  useInput(pressed, { isActive });
  return <Box minHeight={turn % 2} />;
}

// A library that prints in a loop must not fill the memory while nobody sees it.
const mostPrinted = 200;

/** The terminal as ink sees it: of its size, but what ink or a patched console writes to it is kept for later. */
function silenced(stdout: NodeJS.WriteStream, printed: string[]): NodeJS.WriteStream {
  const write = (text: string | Uint8Array, ...rest: readonly unknown[]): boolean => {
    if (typeof text === 'string' && text.trim() !== '' && printed.length < mostPrinted) printed.push(text);
    const callback = rest.find((argument) => typeof argument === 'function');
    callback?.();
    return true;
  };
  return new Proxy(stdout, {
    get: (target, property): unknown => {
      if (property === 'write') return write;
      return property === 'isTTY' ? false : Reflect.get(target, property);
    },
  });
}

/** Waits until everything written so far has left the process. */
function flushed(stdout: NodeJS.WriteStream): Promise<void> {
  if (!stdout.writable) return Promise.resolve();
  return new Promise((resolve) => {
    stdout.write('', () => resolve());
  });
}
