/** The lower part of the screen: what the selected Issue asks, waits for and prints. And the help. */
import { printable, printableLines } from '../platform/text.js';
import { issueStatus } from '../state.js';
import type { IssueView, RunState } from '../state.js';
import { bindings } from './keys.js';
import { cut } from './paint.js';
import type { Line, Span } from './paint.js';
import { ellipsisOf } from './rows.js';
import { lookOf } from './status.js';
import { clamp } from './ui.js';
import { cellsOf, truncate, wrap } from './width.js';

/** Size of a part of the screen. */
export interface Space {
  readonly cells: number;
  readonly rows: number;
}

/** A part of the screen, and how far it can be scrolled. */
export interface Pane {
  readonly lines: readonly Line[];
  readonly furthest: number;
  readonly page: number;
}

/** What the log of an Issue is drawn from. */
export interface LogContext {
  readonly state: RunState;
  readonly unicode: boolean;
  /** Lines of the log, already safe to show. */
  readonly log: readonly string[];
  /** Rows scrolled up from the newest line. */
  readonly offset: number;
  readonly focused: boolean;
}

/** Draws a heading, what there is to say about the Issue, and the end of its log. */
export function logPane(view: IssueView, space: Space, context: LogContext): Pane {
  const heading = headingOf(`${view.id}  ${printable(view.title)}`, space, context);
  const about = aboutOf(view, space, context).slice(0, Math.floor((space.rows - 1) / 2));
  return withLog([heading, ...about], space, { ...context, nothing: nothing(view, context.state) });
}

/** Draws what is done for the Spec as a whole while it has no Issue to select. */
export function wholePane(space: Space, context: LogContext): Pane {
  const { whole } = context.state;
  if (whole === null || whole.log === null) return { lines: [], furthest: 0, page: 0 };
  const name = whole.kind === 'plan' ? `plan by ${whole.driver}` : `gate ${whole.gate}`;
  return withLog([headingOf(printable(name), space, context)], space, { ...context, nothing: 'no output yet' });
}

/** Puts the end of the log below some lines, or says why there is none. */
function withLog(above: readonly Line[], space: Space, context: LogContext & { readonly nothing: string }): Pane {
  const page = Math.max(0, space.rows - above.length);
  const rows = wrapped(context.log, space.cells);
  const furthest = Math.max(0, rows.length - page);
  const end = rows.length - clamp(context.offset, 0, furthest);
  const shown = rows.slice(Math.max(0, end - page), end);
  const lines: readonly Line[] =
    rows.length > 0 ? shown.map((text) => [plain(text)]) : [[dim(truncate(context.nothing, space.cells, ''))]];
  return { lines: [...above, ...lines].slice(0, space.rows), furthest, page };
}

/** Draws the table of keys. */
export function helpPane(space: Space, offset: number): Pane {
  const rows = bindings
    .flatMap(({ keys, meaning }) =>
      wrapWords(meaning, Math.max(10, space.cells - keyCells)).map((text, index): Line => [
        { text: (index === 0 ? keys.join(', ') : '').padEnd(keyCells), tone: 'strong' },
        plain(text),
      ]),
    )
    .map((row) => cut(row, space.cells, ''));
  const furthest = Math.max(0, rows.length - space.rows);
  const top = clamp(offset, 0, furthest);
  return { lines: rows.slice(top, top + space.rows), furthest, page: space.rows };
}

const keyCells = Math.max(...bindings.map((binding) => binding.keys.join(', ').length)) + 2;

function headingOf(name: string, { cells }: Space, context: LogContext): Line {
  const bar = context.unicode ? '─' : '-';
  const scrolled = context.offset > 0 && cells >= 40 ? ' paused, G follows ' : '';
  const room = Math.max(0, cells - 6 - scrolled.length);
  const title = truncate(name, room, ellipsisOf(context.unicode));
  const before = Math.min(2, cells);
  const after = Math.max(0, Math.min(2, cells - 4));
  return [
    dim(bar.repeat(before) + (cells > 2 ? ' ' : '')),
    { text: title, tone: context.focused ? 'strong' : 'plain' },
    dim((cells > 3 ? ' ' : '') + bar.repeat(room - cellsOf(title))),
    { text: scrolled, tone: 'warn' },
    dim(bar.repeat(after)),
  ];
}

/** Its question and how to answer it, or in full what the row may have had no room for. */
function aboutOf(view: IssueView, { cells }: Space, context: LogContext): readonly Line[] {
  const look = lookOf(issueStatus(context.state.issues, view.id), context.unicode);
  const tone = look.tone === 'active' ? 'dim' : look.tone;
  const lines: Line[] = [];
  for (const line of printableLines(look.detail).split('\n')) {
    if (line.trim() !== '') lines.push(...wrapWords(untabbed(line), cells).map((text) => [{ text, tone }]));
  }
  if (view.progress.kind === 'needs-human') {
    const command = `giro status ${context.state.spec ?? ''}/${view.id}`;
    lines.unshift([{ text: truncate(command, cells, ellipsisOf(context.unicode)), tone: 'strong' }]);
  }
  if (context.focused && view.log !== null) {
    lines.push(...wrap(`log: ${printable(view.log)}`, cells).map((text) => [dim(text)]));
  }
  return lines;
}

function nothing(view: IssueView, state: RunState): string {
  if (view.log === null) return 'no transcript in this run';
  const { kind } = issueStatus(state.issues, view.id);
  return kind === 'done' || kind === 'needs-human' ? 'it printed nothing' : 'no output yet';
}

/** Makes the end of a log safe to show, as lines without tabs. */
export function logLines(text: string): readonly string[] {
  const trimmed = printableLines(text).trimEnd();
  return trimmed === '' ? [] : trimmed.split('\n').map(untabbed);
}

function untabbed(line: string): string {
  return line.replaceAll('\t', '    ');
}

const lastWrapped = new WeakMap<readonly string[], { readonly cells: number; readonly rows: readonly string[] }>();

/** A log is drawn many times before it changes. */
function wrapped(lines: readonly string[], cells: number): readonly string[] {
  const before = lastWrapped.get(lines);
  if (before?.cells === cells) return before.rows;
  const rows = lines.flatMap((line) => wrap(line, cells));
  lastWrapped.set(lines, { cells, rows });
  return rows;
}

/** Breaks a sentence between words where it can. */
function wrapWords(text: string, cells: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (cellsOf(longer) <= cells) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    const pieces = wrap(word, cells);
    lines.push(...pieces.slice(0, -1));
    line = pieces.at(-1) ?? '';
  }
  return [...lines, line];
}

function plain(text: string): Span {
  return { text, tone: 'plain' };
}

function dim(text: string): Span {
  return { text, tone: 'dim' };
}
