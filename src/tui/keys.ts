/** The keys of the board: one table for what they do, for the help on the screen and for `docs/board.md`. */

/** What a key asks for. */
export type Action =
  | 'up'
  | 'down'
  | 'page-up'
  | 'page-down'
  | 'half-up'
  | 'half-down'
  | 'first'
  | 'last'
  | 'next-human'
  | 'switch'
  | 'back'
  | 'help'
  | 'redraw'
  | 'quit'
  | 'interrupt';

/** One line of the table. */
export interface Binding {
  readonly action: Action;
  /** As they are named on the screen and in the docs; matched without regard to where they are pressed. */
  readonly keys: readonly string[];
  readonly meaning: string;
}

/** Every key of the board, in the order of the help. */
export const bindings: readonly Binding[] = [
  { action: 'up', keys: ['Up', 'k'], meaning: 'one row up; in the log, one line' },
  { action: 'down', keys: ['Down', 'j'], meaning: 'one row down; in the log, one line' },
  { action: 'page-up', keys: ['PgUp'], meaning: 'one page up' },
  { action: 'page-down', keys: ['PgDn'], meaning: 'one page down' },
  { action: 'half-up', keys: ['Ctrl+U'], meaning: 'half a page up' },
  { action: 'half-down', keys: ['Ctrl+D'], meaning: 'half a page down' },
  { action: 'first', keys: ['g', 'Home'], meaning: 'first row; in the log, the oldest line shown' },
  { action: 'last', keys: ['G', 'End'], meaning: 'last row; in the log, the newest line, and follow it' },
  { action: 'next-human', keys: ['n'], meaning: 'next Issue that needs a human' },
  {
    action: 'switch',
    keys: ['Enter', 'Tab'],
    meaning: 'from the list to the log of the selected Issue; Tab also goes back',
  },
  { action: 'back', keys: ['Esc'], meaning: 'back to the list' },
  { action: 'help', keys: ['?'], meaning: 'show or hide this help' },
  { action: 'redraw', keys: ['Ctrl+L'], meaning: 'draw the whole screen anew' },
  {
    action: 'quit',
    keys: ['q'],
    meaning: 'while the run goes on, ask whether to stop it; when it has finished, leave',
  },
  { action: 'interrupt', keys: ['Ctrl+C'], meaning: 'stop in good order; pressed again, end everything at once' },
];

const byKey: ReadonlyMap<string, Action> = new Map(
  bindings.flatMap((binding) => binding.keys.map((key) => [key, binding.action])),
);

/** What ink says of a key besides the characters it typed. */
export interface Pressed {
  readonly upArrow?: boolean;
  readonly downArrow?: boolean;
  readonly pageUp?: boolean;
  readonly pageDown?: boolean;
  readonly home?: boolean;
  readonly end?: boolean;
  readonly return?: boolean;
  readonly tab?: boolean;
  readonly escape?: boolean;
  readonly ctrl?: boolean;
  readonly meta?: boolean;
}

/** Names what was pressed as the table does; keys typed faster than they are read arrive as one text. */
export function namesOf(input: string, pressed: Pressed): readonly string[] {
  const named = specialName(pressed);
  if (named !== undefined) return [named];
  if (pressed.ctrl === true) return [`Ctrl+${input.toUpperCase()}`];
  return pressed.meta === true ? [] : Array.from(input, nameOfCharacter);
}

/** Two presses of Ctrl+C in one read arrive as two control characters, which ink hands on as they are. */
function nameOfCharacter(character: string): string {
  switch (character) {
    case '\r':
    case '\n':
      return 'Enter';
    case '\t':
      return 'Tab';
    case '\u001b':
      return 'Esc';
    default:
      return character < ' ' ? `Ctrl+${String.fromCharCode(character.charCodeAt(0) + 64)}` : character;
  }
}

/** What a named key asks for; null when nothing. */
export function actionOf(name: string): Action | null {
  return byKey.get(name) ?? null;
}

function specialName(pressed: Pressed): string | undefined {
  const special: readonly (readonly [boolean | undefined, string])[] = [
    [pressed.upArrow, 'Up'],
    [pressed.downArrow, 'Down'],
    [pressed.pageUp, 'PgUp'],
    [pressed.pageDown, 'PgDn'],
    [pressed.home, 'Home'],
    [pressed.end, 'End'],
    [pressed.return, 'Enter'],
    [pressed.tab, 'Tab'],
    [pressed.escape, 'Esc'],
  ];
  return special.find(([is]) => is === true)?.[1];
}
