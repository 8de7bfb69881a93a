/**
 * Rows of text on the terminal's alternate screen: what changed is written at its place, and nothing else.
 *
 * ink 6.8 would do this too, but not well enough: its incremental rendering writes one row too low once a frame ends with
 * a line end, a frame as high as the terminal clears the scrollback of the user, every text it ever measured stays in
 * memory, with `CI` set it writes nothing, and a frame of 50 rows takes it 8 ms. So ink gives the board its keys, its pace
 * and its orderly end, and the rows are written here.
 */

/** What a screen is written to. */
export interface Output {
  write(text: string): boolean;
  once(event: 'drain', listener: () => void): unknown;
}

/** The screen while the board is up. */
export interface Screen {
  /** Shows these rows, from the top. */
  draw(rows: readonly string[]): void;
  /** Clears it: after a resize, or when something else wrote to it, nobody knows what is where. */
  clear(): void;
  ring(): void;
  /** Gives the terminal back as it was: main screen, cursor, line wrap. */
  leave(): void;
  /** The terminal is gone: nothing is written any more. */
  abandon(): void;
}

// Without line wrap a row that the terminal draws wider than expected is cut, and never takes a second one.
const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J';
const back = '\u001b[0m\u001b[?7h\u001b[?25h\u001b[?1049l';
const erase = '\u001b[0m\u001b[2J';
// One update at a time, for terminals that know it; others ignore it.
const begin = '\u001b[?2026h';
const end = '\u001b[?2026l';

/** Takes over the terminal. */
export function enterScreen(output: Output): Screen {
  let shown: readonly string[] = [];
  let waiting: readonly string[] | null = null;
  let blocked = false;
  let open = true;
  const write = (text: string): void => {
    if (!open || output.write(text)) return;
    blocked = true;
    output.once('drain', () => {
      blocked = false;
      if (waiting !== null) draw(waiting);
    });
  };
  const draw = (rows: readonly string[]): void => {
    // A terminal slower than the run gets the newest frame when it is ready, not all of them.
    waiting = blocked ? rows : null;
    if (blocked) return;
    const changes = changesOf(shown, rows);
    shown = rows;
    if (changes !== '') write(begin + changes + end);
  };
  write(enter);
  return {
    draw,
    clear: () => {
      shown = [];
      write(erase);
    },
    ring: () => write('\u0007'),
    leave: () => {
      write(back);
      open = false;
    },
    abandon: () => {
      open = false;
    },
  };
}

function changesOf(before: readonly string[], after: readonly string[]): string {
  let changes = '';
  for (let index = 0; index < Math.max(before.length, after.length); index++) {
    const row = after[index] ?? '';
    if (row !== (before[index] ?? '')) changes += `\u001b[${index + 1};1H\u001b[2K${row}`;
  }
  return changes;
}
