/** Keeps the end of the selected Issue's log at hand: reads again when it may have grown, never twice at once. */
import { issueStatus } from '../state.js';
import type { IssueView, RunState } from '../state.js';
import { logLines } from './pane.js';

/** The end of one log. */
export interface Tail {
  /** Safe to show. */
  readonly lines: readonly string[];
  /** Wants the log of this Issue, or with none that of the Spec; reads it when it is another one, or in another state. */
  want(view: IssueView | null, state: RunState): void;
  /** Reads again if its Issue is still at work. */
  refresh(): void;
}

/** What a tail needs. */
export interface TailOptions {
  readonly read: (path: string, maxBytes: number) => Promise<string>;
  readonly changed: () => void;
}

// Some hundred rows: enough to scroll back to what matters, little enough to be made safe once a second.
const maxBytes = 64 * 1024;

interface Wanted {
  readonly path: string;
  /** Changes with everything that may have brought the last lines. */
  readonly key: string;
  readonly live: boolean;
}

/** Makes a tail that shows nothing yet. */
export function createTail(options: TailOptions): Tail {
  let wanted: Wanted | null = null;
  let text = '';
  let lines: readonly string[] = [];
  let reading = false;
  const show = (next: string): void => {
    if (next === text) return;
    text = next;
    lines = logLines(next);
    options.changed();
  };
  const read = async (): Promise<void> => {
    if (reading) return;
    reading = true;
    for (let asked: Wanted | null = null; wanted !== null && wanted.key !== asked?.key;) {
      asked = wanted;
      const found = await readable(asked.path, options);
      // The selection may have moved on while the file was read; then it is read again.
      if (asked.path === currentPath()) show(found);
    }
    reading = false;
  };
  const currentPath = (): string | undefined => wanted?.path;
  return {
    get lines() {
      return lines;
    },
    want: (view, state) => {
      const next = view === null ? ofWhole(state) : wantedOf(view, state);
      if (next?.key === wanted?.key) return;
      if (next?.path !== wanted?.path) show('');
      wanted = next;
      void read();
    },
    refresh: () => {
      if (wanted?.live === true) void read();
    },
  };
}

function wantedOf(view: IssueView, state: RunState): Wanted | null {
  if (view.log === null) return null;
  const { kind } = issueStatus(state.issues, view.id);
  const live = kind === 'working' || kind === 'judging' || kind === 'integrating';
  return { path: view.log, key: `${kind} ${view.log}`, live };
}

function ofWhole({ whole }: RunState): Wanted | null {
  return whole === null || whole.log === null ? null : { path: whole.log, key: `whole ${whole.log}`, live: true };
}

async function readable(path: string, { read }: TailOptions): Promise<string> {
  try {
    return await read(path, maxBytes);
  } catch (error) {
    return `cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`;
  }
}
