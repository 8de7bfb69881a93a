import { describe, expect, test } from 'vitest';
import { initialUi, press } from '../../src/tui/ui.js';
import type { Extent, UiState } from '../../src/tui/ui.js';
import { issue, ui } from './demo.js';

const order = ['01-a', '02-b', '03-c', '04-d', '05-e', '06-f', '07-g', '08-h', '09-i'].map(issue);

const extent = (more: Partial<Extent> = {}): Extent => ({
  order,
  selected: order[0]!,
  needsHuman: new Set([order[1]!, order[5]!]),
  page: 4,
  furthest: 10,
  stage: 'going',
  ...more,
});

/** Presses one key after the other, as a person does. */
function pressed(from: UiState, keys: readonly string[], more: Partial<Extent> = {}): UiState {
  return keys.reduce(
    (state, key) => press(state, [key], extent({ selected: state.selected ?? order[0]!, ...more })).ui,
    from,
  );
}

const effects = (from: UiState, names: readonly string[], more: Partial<Extent> = {}): readonly string[] =>
  press(from, names, extent(more)).effects;

describe('in the list', () => {
  test('the selection moves by rows, pages and to the ends, and stays inside', () => {
    const selected = (keys: readonly string[]): string | null => pressed(initialUi, keys).selected;
    expect(selected(['Down', 'j'])).toBe('03-c');
    expect(selected(['Down', 'Up', 'k'])).toBe('01-a');
    expect(selected(['PgDn'])).toBe('04-d');
    expect(selected(['PgDn', 'PgDn', 'PgDn', 'PgDn'])).toBe('09-i');
    expect(selected(['Ctrl+D'])).toBe('03-c');
    expect(selected(['G', 'Ctrl+U'])).toBe('07-g');
    expect(selected(['End', 'PgUp'])).toBe('06-f');
    expect(selected(['G', 'g'])).toBe('01-a');
  });

  test('n goes to the next Issue that needs a human, and round', () => {
    expect(pressed(initialUi, ['n']).selected).toBe('02-b');
    expect(pressed(initialUi, ['n', 'n']).selected).toBe('06-f');
    expect(pressed(initialUi, ['n', 'n', 'n']).selected).toBe('02-b');
    expect(pressed(initialUi, ['Down', 'Down', 'n'], { needsHuman: new Set() }).selected).toBe('03-c');
  });

  test('an empty list is no trouble', () => {
    expect(press(initialUi, ['Down'], extent({ order: [], selected: null })).ui.selected).toBeNull();
  });
});

describe('in the log', () => {
  const log = ui({ focus: 'log', selected: order[0]! });

  test('Enter and Tab go to it, Esc and Tab come back', () => {
    expect(pressed(initialUi, ['Enter']).focus).toBe('log');
    expect(pressed(initialUi, ['Tab']).focus).toBe('log');
    expect(pressed(log, ['Tab']).focus).toBe('list');
    expect(pressed({ ...log, offset: 4 }, ['Esc'])).toMatchObject({ focus: 'list', offset: 0 });
  });

  test('it scrolls up to its oldest line, and G follows the newest again', () => {
    expect(pressed(log, ['Up', 'k']).offset).toBe(2);
    expect(pressed(log, ['PgUp']).offset).toBe(3);
    expect(pressed(log, ['g']).offset).toBe(10);
    expect(pressed(log, ['g', 'G']).offset).toBe(0);
    expect(pressed(log, ['Down']).offset).toBe(0);
  });

  test('another Issue is shown from its newest line', () => {
    expect(pressed({ ...log, offset: 4 }, ['n'])).toMatchObject({ selected: '02-b', focus: 'log', offset: 0 });
  });
});

test('? shows and hides the help, which scrolls down', () => {
  expect(pressed(initialUi, ['?']).focus).toBe('help');
  expect(pressed(initialUi, ['?', '?']).focus).toBe('list');
  expect(pressed(initialUi, ['?', 'Down', 'Down'])).toMatchObject({ focus: 'help', offset: 2 });
  expect(pressed(initialUi, ['?', 'Down', 'Esc'])).toMatchObject({ focus: 'list', offset: 0 });
});

describe('leaving', () => {
  test('while the run goes on, q asks and only y stops it', () => {
    const asking = pressed(initialUi, ['q']);
    expect(asking.asking).toBe(true);
    expect(effects(initialUi, ['q'])).toEqual([]);
    expect(effects(asking, ['y'])).toEqual(['quit']);
    expect(press(asking, ['y'], extent()).ui.asking).toBe(false);
    for (const key of ['n', 'q', 'Esc', 'Down', 'Enter']) {
      expect(press(asking, [key], extent())).toEqual({ ui: { ...asking, asking: false }, effects: [] });
    }
  });

  test('when the run has finished, q leaves; while it stops, q does nothing', () => {
    expect(effects(initialUi, ['q'], { stage: 'finished' })).toEqual(['quit']);
    expect(press(initialUi, ['q'], extent({ stage: 'stopping' }))).toEqual({ ui: initialUi, effects: [] });
  });

  test('a pasted text cannot stop the run', () => {
    expect(press(initialUi, ['y', 'q', 'y'], extent())).toMatchObject({ ui: { asking: false }, effects: [] });
    expect(effects(initialUi, ['q', 'q'], { stage: 'finished' })).toEqual([]);
    expect(press(pressed(initialUi, ['q']), ['y', 'e', 's'], extent())).toMatchObject({
      ui: { asking: false },
      effects: [],
    });
  });

  test('Ctrl+C interrupts each time, from everywhere', () => {
    expect(effects(initialUi, ['Ctrl+C'])).toEqual(['interrupt']);
    expect(effects(initialUi, ['Ctrl+C', 'Ctrl+C'])).toEqual(['interrupt', 'interrupt']);
    expect(effects(ui({ focus: 'help' }), ['Ctrl+C'])).toEqual(['interrupt']);
    expect(effects(ui({ asking: true }), ['Ctrl+C'])).toEqual(['interrupt']);
  });

  test('Ctrl+L draws anew, and an unknown key does nothing', () => {
    expect(effects(initialUi, ['Ctrl+L'])).toEqual(['redraw']);
    expect(press(initialUi, ['z'], extent())).toEqual({ ui: initialUi, effects: [] });
  });
});

test('several keys in one read move as one after the other do', () => {
  expect(press(initialUi, ['j', 'j', 'j'], extent()).ui.selected).toBe('04-d');
});
