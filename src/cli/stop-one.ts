/** Stops one Spec of a run of several, and leaves the others alone. */
import { allowManyListeners } from '../platform/clock.js';
import { endCancelled } from '../platform/process.js';
import type { RunLock } from '../store/lock.js';
import { stoppingEvent, type Shown } from './showing.js';
import type { Stoppable } from './stop-watch.js';
import { Stopped, type StoppedBy } from './stopping.js';

/** What ends one Spec, or the run it is part of. */
export interface SpecStops {
  readonly signal: AbortSignal;
  readonly noMore: AbortSignal;
  readonly stopped: () => StoppedBy | null;
  /** What ended this Spec and not the run; `null`: nothing. */
  readonly alone: () => StoppedBy | null;
}

/** Watches for what is asked of one Spec while it is run. */
export async function whileStoppable<T>(
  { lock, shown }: { readonly lock: RunLock; readonly shown: Shown },
  act: (stops: SpecStops) => Promise<T>,
): Promise<T> {
  const { stops, stopping, feed } = shown;
  const own = new AbortController();
  const [signal, noMore] = [stopping.signal, shown.noMore].map((all) => AbortSignal.any([all, own.signal]));
  if (signal === undefined || noMore === undefined) throw new Error('two signals were made');
  for (const one of [own.signal, signal, noMore]) allowManyListeners(one);
  let alone: StoppedBy | null = null;
  const stoppable: Stoppable = {
    lock,
    files: [lock.spec],
    asked: (asked) => {
      alone ??= asked;
      feed.of(lock.spec)(stoppingEvent(asked));
      own.abort(new Stopped(asked.why));
      if (asked.now) endCancelled(own.signal);
    },
  };
  await stops.add(stoppable);
  try {
    return await act({ signal, noMore, stopped: () => shown.stopped() ?? alone, alone: () => alone });
  } finally {
    await stops.remove(stoppable);
  }
}
