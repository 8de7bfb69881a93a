import { describe, expect, test } from 'vitest';
import { enterScreen } from '../../src/tui/screen.js';

class Recorder {
  readonly writes: string[] = [];
  full = false;
  #drained: (() => void) | null = null;

  write(text: string): boolean {
    this.writes.push(text);
    return !this.full;
  }

  once(_event: 'drain', listener: () => void): void {
    this.#drained = listener;
  }

  drain(): void {
    this.full = false;
    this.#drained?.();
  }

  /** What was written since the last look. */
  take(): string {
    return this.writes.splice(0).join('');
  }
}

const opened = (): { readonly output: Recorder; readonly screen: ReturnType<typeof enterScreen> } => {
  const output = new Recorder();
  const screen = enterScreen(output);
  return { output, screen };
};

describe('the screen', () => {
  test('is the alternate one, without cursor and line wrap, and is given back', () => {
    const { output, screen } = opened();
    expect(output.take()).toBe('\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J');
    screen.leave();
    expect(output.take()).toBe('\u001b[0m\u001b[?7h\u001b[?25h\u001b[?1049l');
  });

  test('gets only the rows that changed, each at its place, in one synchronized write', () => {
    const { output, screen } = opened();
    screen.draw(['a', 'b', 'c']);
    output.take();
    screen.draw(['a', 'B', 'c']);
    expect(output.writes).toEqual(['\u001b[?2026h\u001b[2;1H\u001b[2KB\u001b[?2026l']);
  });

  test('gets nothing when nothing changed', () => {
    const { output, screen } = opened();
    screen.draw(['a', 'b']);
    output.take();
    screen.draw(['a', 'b']);
    expect(output.writes).toEqual([]);
  });

  test('loses the rows a shorter frame does not have', () => {
    const { output, screen } = opened();
    screen.draw(['a', 'b']);
    output.take();
    screen.draw(['a']);
    expect(output.take()).toContain('\u001b[2;1H\u001b[2K\u001b[?2026l');
  });

  test('is drawn whole again after it was cleared', () => {
    const { output, screen } = opened();
    screen.draw(['a', 'b']);
    output.take();
    screen.clear();
    screen.draw(['a', 'b']);
    expect(output.take()).toBe(
      '\u001b[0m\u001b[2J\u001b[?2026h\u001b[1;1H\u001b[2Ka\u001b[2;1H\u001b[2Kb\u001b[?2026l',
    );
  });

  test('never clears the scrollback', () => {
    const { output, screen } = opened();
    screen.draw(['a']);
    screen.clear();
    screen.leave();
    expect(output.take()).not.toContain('\u001b[3J');
  });

  test('gets the newest frame, not all of them, when the terminal is slow', () => {
    const { output, screen } = opened();
    output.full = true;
    screen.draw(['1']);
    output.take();
    screen.draw(['2']);
    screen.draw(['3']);
    expect(output.writes).toEqual([]);
    output.drain();
    expect(output.take()).toBe('\u001b[?2026h\u001b[1;1H\u001b[2K3\u001b[?2026l');
  });

  test('writes nothing any more to a terminal that is gone, or after it was left', () => {
    const gone = opened();
    gone.output.take();
    gone.screen.abandon();
    gone.screen.draw(['a']);
    gone.screen.leave();
    expect(gone.output.writes).toEqual([]);
    const left = opened();
    left.screen.leave();
    left.output.take();
    left.screen.draw(['a']);
    expect(left.output.writes).toEqual([]);
  });
});
