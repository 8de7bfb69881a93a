/** Rows of the list: columns of fixed width first, free text last, so that no title can shift a column. */
import { printable } from '../platform/text.js';
import { issueStatus } from '../state.js';
import type { IssueView, RunState } from '../state.js';
import type { Entry } from './listing.js';
import { cut } from './paint.js';
import type { Line, Span } from './paint.js';
import { coarse, lookOf, wordCells } from './status.js';
import type { Look } from './status.js';
import { cellsOf, fit, truncate } from './width.js';

/** What the look of a row depends on besides its Issue. */
export interface RowContext {
  readonly state: RunState;
  readonly now: number;
  readonly cells: number;
  readonly widestId: number;
  readonly unicode: boolean;
}

/** Draws one row, at most so many cells wide. */
export function rowOf(entry: Entry, selected: boolean, context: RowContext): Line {
  if (entry.kind === 'wave') {
    const text = `wave ${entry.wave}  ${entry.done} of ${entry.total} done`;
    return [{ text: truncate(text, context.cells, ellipsisOf(context.unicode)), tone: 'dim' }];
  }
  const look = lookOf(issueStatus(context.state.issues, entry.view.id), context.unicode);
  const facts: Facts = { ...context, look, selected, elapsed: elapsed(entry.view, context) };
  // Measuring text is what a frame spends its time on, and from frame to frame hardly any row changes.
  const key = `${facts.cells} ${facts.widestId} ${selected} ${facts.unicode} ${facts.elapsed} ${look.word} ${look.detail}`;
  const before = drawn.get(entry.view);
  if (before?.key === key) return before.line;
  const line = issueRow(entry.view, facts);
  drawn.set(entry.view, { key, line });
  return line;
}

const drawn = new WeakMap<IssueView, { readonly key: string; readonly line: Line }>();

interface Facts {
  readonly cells: number;
  readonly widestId: number;
  readonly unicode: boolean;
  readonly look: Look;
  readonly selected: boolean;
  readonly elapsed: string;
}

function issueRow(view: IssueView, facts: Facts): Line {
  const { look, selected, unicode, cells } = facts;
  const marker = selected ? (unicode ? '❯ ' : '> ') : '  ';
  const head: readonly Span[] = [
    { text: marker, tone: 'strong' },
    { text: `${look.symbol} ${look.word.padEnd(wordCells)} `, tone: look.tone },
  ];
  return cut([...head, ...columns(view, facts)], cells, '');
}

/** Shortens by one character what has no room. */
export function ellipsisOf(unicode: boolean): string {
  return unicode ? '…' : '~';
}

const headCells = 2 + 2 + wordCells + 1;

function columns(view: IssueView, facts: Facts): readonly Span[] {
  const { cells, look, selected } = facts;
  const room = cells - headCells;
  const ellipsis = ellipsisOf(facts.unicode);
  const wide = cells >= 60;
  const narrow = cells < 36;
  const tone = selected ? 'strong' : look.tone === 'dim' ? 'dim' : 'plain';
  const idCells = Math.min(facts.widestId, wide ? Math.floor(cells * 0.3) : room - (narrow ? 0 : 5));
  const attempt = view.attempts > 0 ? `#${view.attempts}` : '';
  const numbers = wide ? `${attempt.padEnd(4)}${facts.elapsed.padStart(6)}  ` : narrow ? '' : attempt.padEnd(4);
  const left = room - idCells - 1 - numbers.length;
  return [
    { text: `${fit(view.id, idCells, ellipsis)} `, tone },
    { text: numbers, tone: 'dim' },
    ...(left >= 8 ? freeText(view, look, { cells: left, ellipsis, tone }) : []),
  ];
}

/** How long it took, or takes: from its first attempt to its rest, or to the end of the run. */
function elapsed(view: IssueView, context: RowContext): string {
  if (view.startedAt === null) return '';
  const end = view.endedAt ?? context.state.result?.at;
  return coarse((end === undefined ? context.now : Date.parse(end)) - Date.parse(view.startedAt));
}

interface FreeText {
  readonly cells: number;
  readonly ellipsis: string;
  readonly tone: Span['tone'];
}

/** Title and what it does now; where both have no room, that is worth more, and what it waits for is worth all. */
function freeText(view: IssueView, look: Look, { cells, ellipsis, tone }: FreeText): readonly Span[] {
  const title = printable(view.title);
  const detail = printable(look.detail);
  if (detail === '') return [{ text: truncate(title, cells, ellipsis), tone }];
  const share = look.word === 'waiting' ? 1 : 0.6;
  const wanted = Math.min(cellsOf(detail), Math.max(Math.ceil(cells * share), cells - 2 - cellsOf(title)));
  const forTitle = cells - wanted - 2;
  const detailTone = look.tone === 'bad' || look.tone === 'warn' ? look.tone : 'dim';
  if (forTitle < 8) return [{ text: truncate(detail, cells, ellipsis), tone: detailTone }];
  return [
    { text: `${truncate(title, forTitle, ellipsis)}  `, tone },
    { text: truncate(detail, wanted, ellipsis), tone: detailTone },
  ];
}
