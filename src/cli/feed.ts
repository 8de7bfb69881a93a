/** The events of one run, on their way to its log and to whoever looks at it. */
import type { Emit, Event } from '../event.js';
import { systemClock } from '../platform/clock.js';
import type { LineWriter } from '../platform/files.js';
import { ndjsonOf } from '../report/ndjson.js';
import { emptyBacklog, reduceBacklog, type BacklogState } from '../backlog-state.js';
import type { SpecSlug } from '../issue.js';
import type { Show } from './show.js';

/** Names and times the events of a run, folds them, and hands them on. */
export class Feed {
  /** Who looks at it. */
  show: Show | null = null;
  readonly #run: string;
  readonly #log: LineWriter;
  #state: BacklogState = emptyBacklog;

  constructor(run: string, log: LineWriter) {
    this.#run = run;
    this.#log = log;
  }

  /** What the events so far come to. */
  get state(): BacklogState {
    return this.#state;
  }

  /** Takes what is about no one Spec. */
  readonly emit: Emit = (body) => {
    this.#take({ v: 1, at: systemClock.iso(), run: this.#run, ...body });
  };

  /** Takes what is about one Spec. */
  of(spec: SpecSlug): Emit {
    return (body) => {
      this.#take({ v: 1, at: systemClock.iso(), run: this.#run, ...('spec' in body ? {} : { spec }), ...body });
    };
  }

  #take(event: Event): void {
    this.#state = reduceBacklog(this.#state, event);
    this.#log.line(ndjsonOf(event));
    this.show?.event(event, this.#state);
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}
