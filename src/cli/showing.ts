/** A run while somebody looks at it: its events, its view, and how it is stopped. */
import { join } from 'node:path';
import type { EventBody } from '../event.js';
import { allowManyListeners, systemClock } from '../platform/clock.js';
import { formatDuration } from '../platform/duration.js';
import { openAppend } from '../platform/files.js';
import { endCancelled } from '../platform/process.js';
import { printable } from '../platform/text.js';
import { Countdown } from './countdown.js';
import type { Deadline } from './deadline.js';
import { Feed } from './feed.js';
import { levelOf, type ImplementOptions } from './options.js';
import { chooseShow, openShow, type Show, type ShowKind, type Terminal } from './show.js';
import { StopWatch, type Stoppable, type StopAsked } from './stop-watch.js';
import { listenForStop, type StoppedBy, type Stopping } from './stopping.js';

/** What a run that is looked at has. */
export interface Shown {
  readonly terminal: Terminal;
  readonly feed: Feed;
  readonly stopping: Stopping;
  readonly view: Show;
  readonly kind: ShowKind;
  /** Aborted: no agent is to be started any more. */
  readonly noMore: AbortSignal;
  /** What ended the run before its end, for its last lines; `null`: nothing did. */
  readonly stopped: () => StoppedBy | null;
  /** Hears of `giro stop` and `STOP` files. */
  readonly stops: StopWatch;
  /** An Issue was integrated so long after its agent had ended. */
  readonly landed: (ms: number) => void;
}

/** Runs something while it is shown; the terminal is given back afterwards, whatever happens. */
export async function whileShown<T>(
  request: {
    readonly run: string;
    readonly runFolder: string;
    readonly options: ImplementOptions;
    readonly terminal: Terminal;
    readonly specs: 'one' | 'several';
    readonly commonDir: string;
    /** What stops the whole run. */
    readonly stoppable: Omit<Stoppable, 'asked'>;
  },
  act: (shown: Shown) => Promise<T>,
): Promise<T> {
  const { run, runFolder, options, terminal, specs } = request;
  const kind = chooseShow(terminal, options, specs);
  const feed = new Feed(run, await openAppend(join(runFolder, 'events.ndjson')));
  const stopping: Stopping = listenForStop({
    onFirst: (signal) => {
      const reason = `${signal}: no new work; agents are ended, state is saved; once more kills at once`;
      feed.emit({ type: 'run.stopping', reason, by: 'signal' });
    },
    onSecond: () => {
      restoreTerminal(terminal);
      const more = `open attempts count; go on with: giro implement ${printable(options.target)}`;
      process.stderr.write(`ended at once; ${more}\n`);
    },
  });
  terminal.stdout.on('error', () => undefined);
  const warned = (warning: Error): void => {
    feed.emit({ type: 'run.notice', level: 'warning', message: printable(`${warning.name}: ${warning.message}`) });
  };
  // Node would write them over the board.
  process.removeAllListeners('warning').on('warning', warned);
  let view: Show | null = null;
  try {
    view = await openShow(kind, terminal, { level: levelOf(options), onInterrupt: stopping.interrupt });
    feed.show = view;
    const timed = startCountdown(options.deadline, { feed, stopping });
    const heard = await startStopWatch(request, { feed, stopping });
    const stopped = (): StoppedBy | null => heard.asked() ?? timed.stopped();
    try {
      return await act({ terminal, feed, stopping, view, kind, ...timed, stopped, stops: heard.stops });
    } finally {
      timed.close();
      await heard.stops.close();
    }
  } finally {
    await view?.close();
    await feed.close();
    stopping.close();
  }
}

/** Hears what the run may be told from outside. */
async function startStopWatch(
  { commonDir, stoppable }: { readonly commonDir: string; readonly stoppable: Omit<Stoppable, 'asked'> },
  { feed, stopping }: Pick<Shown, 'feed' | 'stopping'>,
): Promise<{ readonly stops: StopWatch; readonly asked: () => StoppedBy | null }> {
  const stops = new StopWatch(commonDir, systemClock);
  let first: StopAsked | null = null;
  await stops.add({
    ...stoppable,
    asked: (asked) => {
      first ??= asked;
      feed.emit(stoppingEvent(asked));
      stopping.end(asked.why);
      if (asked.now) endCancelled(stopping.signal);
    },
  });
  void stops.run();
  return { stops, asked: () => (stopping.by() === null ? first : null) };
}

/** The event of a run that was asked to stop. */
export function stoppingEvent({ why, now, by }: StopAsked): Extract<EventBody, { type: 'run.stopping' }> {
  const how = now ? 'agents are ended at once' : 'agents are ended';
  return { type: 'run.stopping', reason: `${why}: no new work; ${how}, state is saved`, by };
}

/** Watches the deadline, when there is one. */
function startCountdown(
  deadline: Deadline | null,
  { feed, stopping }: Pick<Shown, 'feed' | 'stopping'>,
): Pick<Shown, 'noMore' | 'stopped' | 'landed'> & { readonly close: () => void } {
  const nothing = (): void => undefined;
  const signalled = (): StoppedBy | null => stoppedBy(stopping.by());
  if (deadline === null) return { noMore: stopping.signal, stopped: signalled, landed: nothing, close: nothing };
  const countdown = new Countdown(deadline, systemClock);
  const noMore = AbortSignal.any([stopping.signal, countdown.noMore]);
  allowManyListeners(noMore);
  const ended = `the deadline (${deadline.shown}) ended it`;
  void countdown.watch({
    noMore: (leftMs) => {
      const message = `no agent is started any more: the ${formatDuration(leftMs)} until the deadline are for integrating what is finished`;
      feed.emit({ type: 'run.notice', level: 'info', message });
    },
    over: () => {
      feed.emit({ type: 'run.stopping', reason: `${ended}; agents are ended, state is saved`, by: 'deadline' });
      stopping.end(deadline.shown);
    },
  });
  return {
    noMore,
    stopped: () => signalled() ?? stoppedBy(countdown.noMore.aborted ? ended : null),
    landed: (ms) => {
      countdown.landed(ms);
    },
    close: () => {
      countdown.close();
    },
  };
}

function stoppedBy(why: string | null): StoppedBy | null {
  return why === null ? null : { why, first: null };
}

/** Main screen, visible cursor, no colour: whatever the board was doing. */
function restoreTerminal(terminal: Terminal): void {
  if (!terminal.stdout.isTTY) return;
  if (terminal.stdin.isTTY) terminal.stdin.setRawMode(false);
  terminal.stdout.write('\u001b[0m\u001b[?7h\u001b[?25h\u001b[?1049l');
}
