/** What the person looks at: selection, scroll, questions. Pure; the run itself is in `RunState`. */
import { unreachable } from '../failure.js';
import type { IssueId } from '../issue.js';
import { actionOf } from './keys.js';
import type { Action } from './keys.js';

/** Which part of the screen has the keys. */
export type Focus = 'list' | 'log' | 'help';

/** State of the screen that is no state of the run. */
export interface UiState {
  /** Null: the first Issue. */
  readonly selected: IssueId | null;
  /** First visible row of the list. */
  readonly top: number;
  readonly focus: Focus;
  /** Log: rows scrolled up from the newest, 0 follows. Help: rows scrolled down. */
  readonly offset: number;
  /** True while "stop the run? y/n" is on the screen. */
  readonly asking: boolean;
}

/** The screen as it opens. */
export const initialUi: UiState = { selected: null, top: 0, focus: 'list', offset: 0, asking: false };

/** What the newest frame had on it, for keys whose meaning depends on that. */
export interface Extent {
  /** Issues in the order of the list. */
  readonly order: readonly IssueId[];
  readonly selected: IssueId | null;
  readonly needsHuman: ReadonlySet<IssueId>;
  /** Rows of the part that has the focus. */
  readonly page: number;
  /** How far the log or the help can be scrolled. */
  readonly furthest: number;
  readonly stage: 'going' | 'stopping' | 'finished';
}

/** What a key makes the program do. */
export type Effect = 'interrupt' | 'quit' | 'redraw';

/** The screen after a key, and what else is to be done. */
export interface Step {
  readonly ui: UiState;
  readonly effects: readonly Effect[];
}

/** Applies what was pressed in one go. */
export function press(ui: UiState, names: readonly string[], extent: Extent): Step {
  const [name] = names;
  if (name === undefined) return { ui, effects: [] };
  if (names.length > 1) return pressEach(ui, names, extent);
  if (ui.asking && name !== 'Ctrl+C') {
    return { ui: { ...ui, asking: false }, effects: name === 'y' || name === 'Y' ? ['quit'] : [] };
  }
  const action = actionOf(name);
  return action === null ? { ui, effects: [] } : act(ui, action, extent);
}

/** A pasted text must not stop the run: of several keys at once `q` and `y` do nothing, and a question goes away. */
function pressEach(ui: UiState, names: readonly string[], extent: Extent): Step {
  let next: UiState = { ...ui, asking: false };
  const effects: Effect[] = [];
  for (const name of names) {
    const action = actionOf(name);
    if (action === null || action === 'quit') continue;
    const step = act(next, action, { ...extent, selected: next.selected ?? extent.selected });
    next = step.ui;
    effects.push(...step.effects);
  }
  return { ui: next, effects };
}

function act(ui: UiState, action: Action, extent: Extent): Step {
  const stay = (next: UiState): Step => ({ ui: next, effects: [] });
  switch (action) {
    case 'up':
    case 'down':
    case 'page-up':
    case 'page-down':
    case 'half-up':
    case 'half-down':
    case 'first':
    case 'last':
      return stay(move(ui, rowsOf(action, extent), extent));
    case 'next-human':
      return stay(nextHuman(ui, extent));
    case 'switch':
      return stay({ ...ui, focus: ui.focus === 'list' ? 'log' : 'list', offset: 0 });
    case 'back':
      return stay({ ...ui, focus: 'list', offset: 0 });
    case 'help':
      return stay({ ...ui, focus: ui.focus === 'help' ? 'list' : 'help', offset: 0 });
    case 'redraw':
      return { ui, effects: ['redraw'] };
    case 'quit':
      if (extent.stage === 'finished') return { ui, effects: ['quit'] };
      // A second question would only hide that the first answer is being carried out.
      return stay(extent.stage === 'stopping' ? ui : { ...ui, asking: true });
    case 'interrupt':
      return { ui: { ...ui, asking: false }, effects: ['interrupt'] };
    default:
      return unreachable(action);
  }
}

type Movement = 'up' | 'down' | 'page-up' | 'page-down' | 'half-up' | 'half-down' | 'first' | 'last';

/** How many rows a movement goes down. */
function rowsOf(movement: Movement, extent: Extent): number {
  const page = Math.max(1, extent.page - 1);
  switch (movement) {
    case 'up':
      return -1;
    case 'down':
      return 1;
    case 'page-up':
      return -page;
    case 'page-down':
      return page;
    case 'half-up':
      return -Math.ceil(page / 2);
    case 'half-down':
      return Math.ceil(page / 2);
    case 'first':
      return -Infinity;
    case 'last':
      return Infinity;
    default:
      return unreachable(movement);
  }
}

function move(ui: UiState, rows: number, extent: Extent): UiState {
  switch (ui.focus) {
    case 'list': {
      const from = extent.selected === null ? 0 : extent.order.indexOf(extent.selected);
      const to = clamp(from + rows, 0, extent.order.length - 1);
      return select(ui, extent.order[to] ?? null);
    }
    case 'log':
      return { ...ui, offset: clamp(ui.offset - rows, 0, extent.furthest) };
    case 'help':
      return { ...ui, offset: clamp(ui.offset + rows, 0, extent.furthest) };
    default:
      return unreachable(ui.focus);
  }
}

function nextHuman(ui: UiState, extent: Extent): UiState {
  const from = extent.selected === null ? -1 : extent.order.indexOf(extent.selected);
  const around = [...extent.order.slice(from + 1), ...extent.order.slice(0, from + 1)];
  const next = around.find((id) => extent.needsHuman.has(id));
  return next === undefined ? ui : select({ ...ui, focus: ui.focus === 'help' ? 'list' : ui.focus }, next);
}

function select(ui: UiState, id: IssueId | null): UiState {
  return id === ui.selected ? ui : { ...ui, selected: id, offset: 0 };
}

/** Keeps a number between two, the lower one winning. */
export function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(value, most));
}
