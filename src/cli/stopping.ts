/** How a run is stopped: the first signal in order, the second at once. The process then ends by the signal. */
import { allowManyListeners } from '../platform/clock.js';
import { endEveryProcess } from '../platform/process.js';

/** A signal that stops a run. */
export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** What ended a run before its end, for its last lines. */
export interface StoppedBy {
  readonly why: string;
  /** What is to be typed before the run can go on; `null`: nothing. */
  readonly first: string | null;
}

/** Says how a run goes on. */
export function howToGoOn(by: StoppedBy | null, command: string): string {
  return by === null || by.first === null ? command : `${by.first} && ${command}`;
}

/** What the engine is told when a run is stopped. */
export class Stopped extends Error {
  constructor(why: string) {
    super(`stopped by ${why}`);
  }
}

/** Listens for signals while a run is on. */
export interface Stopping {
  readonly signal: AbortSignal;
  /** What stopped the run; `null`: nothing. */
  readonly by: () => StopSignal | null;
  /** Ctrl+C on the board, where it is a key and not a signal. */
  readonly interrupt: () => void;
  /** Stops in order without a signal, as at a deadline. */
  readonly end: (why: string) => void;
  close(): void;
}

/** Starts listening. `onFirst` says it to the person; `onSecond` gives the terminal back before the process dies. */
export function listenForStop(ports: {
  readonly onFirst: (signal: StopSignal) => void;
  readonly onSecond: () => void;
}): Stopping {
  const controller = new AbortController();
  allowManyListeners(controller.signal);
  let by: StopSignal | null = null;
  const stop = (signal: StopSignal): void => {
    if (by === null) {
      by = signal;
      ports.onFirst(signal);
      controller.abort(new Stopped(signal));
      return;
    }
    endEveryProcess();
    ports.onSecond();
    endBySignal(signal, handlers);
  };
  const handlers = new Map<StopSignal, () => void>(
    (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) => [
      signal,
      () => {
        stop(signal);
      },
    ]),
  );
  for (const [signal, handler] of handlers) process.on(signal, handler);
  // Also when a bug ends giro: no agent outlives it.
  process.on('exit', endEveryProcess);
  return {
    signal: controller.signal,
    by: () => by,
    interrupt: () => {
      // The board says what the key does while a run is stopping, whatever stopped it.
      if (controller.signal.aborted) by ??= 'SIGINT';
      stop('SIGINT');
    },
    end: (why) => {
      controller.abort(new Stopped(why));
    },
    close: () => {
      for (const [signal, handler] of handlers) process.off(signal, handler);
      process.off('exit', endEveryProcess);
    },
  };
}

/**
 * Ends the process by a signal, so that whoever started it sees how it ended. Nobody else hears the signal: the board's library
 * would leave the alternate screen again, over what was said last.
 */
function endBySignal(signal: StopSignal, handlers: ReadonlyMap<StopSignal, () => void>): void {
  for (const name of handlers.keys()) process.removeAllListeners(name);
  process.kill(process.pid, signal);
}
