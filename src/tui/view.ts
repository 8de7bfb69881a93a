/** The whole board as plain data: what is on which row, computed from the run, the screen's state and its size. */
import { unreachable } from '../failure.js';
import { shortOid } from '../issue.js';
import { printable } from '../platform/text.js';
import type { IssueView, RunState, WholeWork } from '../state.js';
import { listingOf } from './listing.js';
import type { Listing } from './listing.js';
import { cut, paint, widthOf } from './paint.js';
import type { Line, Span } from './paint.js';
import { helpPane, logPane, wholePane } from './pane.js';
import type { Pane } from './pane.js';
import { ellipsisOf, rowOf } from './rows.js';
import { precise } from './status.js';
import { formatSpending, formatStanding, isUnknown, type SpentFacts } from '../usage.js';
import { clamp } from './ui.js';
import type { Extent, UiState } from './ui.js';
import { truncate } from './width.js';

/** Everything a frame is computed from. */
export interface ViewInput {
  readonly state: RunState;
  readonly ui: UiState;
  readonly columns: number;
  readonly rows: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Lines of the selected Issue's log, safe to show. */
  readonly log: readonly string[];
  /** False: nothing but ASCII of giro's own. */
  readonly unicode: boolean;
}

/** One frame. */
export interface View {
  /** As many as the screen has rows, none wider than it. */
  readonly lines: readonly Line[];
  /** First visible row of the list, to be kept for the next frame. */
  readonly top: number;
  readonly extent: Extent;
}

/** Draws a frame as the text of each row: the whole cost of a frame but for writing what changed. */
export function frameOf(input: ViewInput, color: boolean): readonly string[] {
  return viewOf(input).lines.map((line) => paint(line, color));
}

/** Computes a frame. */
export function viewOf(input: ViewInput): View {
  const listing = listingOf(input.state.issues);
  const selected = selectedOf(listing, input.ui);
  const head = header(input, listing);
  const foot = input.rows >= 4 ? [footer(input, listing)] : [];
  const space = Math.max(0, input.rows - head.length - foot.length);
  const body = bodyOf(input, { listing, selected, rows: space });
  const lines = [...head, ...filled(body.lines, space), ...foot].slice(0, Math.max(0, input.rows));
  return {
    lines,
    top: body.top,
    extent: {
      order: listing.order,
      selected: selected?.id ?? null,
      needsHuman: listing.needsHuman,
      page: body.page,
      furthest: body.furthest,
      stage: stageOf(input.state),
    },
  };
}

/** The Issue whose log is shown. */
export function selectedIssue(state: RunState, ui: UiState): IssueView | null {
  return selectedOf(listingOf(state.issues), ui);
}

function selectedOf(listing: Listing, ui: UiState): IssueView | null {
  const row = ui.selected === null ? undefined : listing.rowOf.get(ui.selected);
  const entry = listing.entries[row ?? 1];
  return entry?.kind === 'issue' ? entry.view : null;
}

function stageOf(state: RunState): Extent['stage'] {
  switch (state.stage) {
    case 'starting':
    case 'planning':
    case 'running':
    case 'validating':
      return 'going';
    case 'stopping':
    case 'finished':
      return state.stage;
    default:
      return unreachable(state.stage);
  }
}

interface BodyRequest {
  readonly listing: Listing;
  readonly selected: IssueView | null;
  readonly rows: number;
}

interface Body extends Pane {
  readonly top: number;
}

function bodyOf(input: ViewInput, request: BodyRequest): Body {
  const { ui, columns: cells } = input;
  const { rows, selected } = request;
  if (ui.focus === 'help') return { ...helpPane({ cells, rows }, ui.offset), top: ui.top };
  const context = { ...input, offset: ui.offset, focused: ui.focus === 'log' };
  const log = (space: number): Pane =>
    selected === null ? wholePane({ cells, rows: space }, context) : logPane(selected, { cells, rows: space }, context);
  if (ui.focus === 'log') return { ...log(rows), top: ui.top };
  const listRows = Math.min(request.listing.entries.length, rows - paneRows(rows));
  const { lines, top } = listOf(input, request, listRows);
  return { lines: [...lines, ...log(rows - listRows).lines], top, page: listRows, furthest: 0 };
}

/** How many rows the log keeps when the list is long: a heading and at least five lines at 24 rows. */
function paneRows(rows: number): number {
  if (rows < 7) return 0;
  return rows < 12 ? 4 : Math.max(6, Math.round(rows * 0.4));
}

function listOf(
  input: ViewInput,
  { listing, selected }: BodyRequest,
  rows: number,
): { readonly lines: readonly Line[]; readonly top: number } {
  const at = selected === null ? 0 : (listing.rowOf.get(selected.id) ?? 0);
  const top = windowTop({ at, top: input.ui.top, rows, total: listing.entries.length, listing });
  const context = { ...input, cells: input.columns, widestId: listing.widestId };
  const lines = listing.entries
    .slice(top, top + rows)
    .map((entry) => rowOf(entry, entry.kind === 'issue' && entry.view.id === selected?.id, context));
  return { lines, top };
}

interface WindowRequest {
  readonly at: number;
  readonly top: number;
  readonly rows: number;
  readonly total: number;
  readonly listing: Listing;
}

/** Moves the window as little as possible so that the selected row is in it, with the heading right above it. */
function windowTop({ at, top, rows, total, listing }: WindowRequest): number {
  const first = listing.entries[at - 1]?.kind === 'wave' && rows > 1 ? at - 1 : at;
  return clamp(clamp(top, at - rows + 1, first), 0, Math.max(0, total - rows));
}

function filled(lines: readonly Line[], rows: number): readonly Line[] {
  return Array.from({ length: rows }, (_, index) => lines[index] ?? []);
}

function header(input: ViewInput, listing: Listing): readonly Line[] {
  const { state, columns: cells, unicode } = input;
  const standing = counts(listing);
  const name = state.spec === null ? 'giro' : `${printable(state.title)} (${state.spec})`;
  const lines = [
    ends([{ text: name, tone: 'strong' }], stageText(input), { cells, unicode, keep: 'right' }),
    ends(standing, [factsOf(state, cells - widthOf(standing) - 2)], { cells, unicode, keep: 'left' }),
  ];
  const message = messageOf(state);
  if (message !== null) lines.push([{ ...message, text: truncate(message.text, cells, ellipsisOf(unicode)) }]);
  return input.rows < 8 ? lines.slice(0, 1) : input.rows < 14 && state.stage !== 'stopping' ? lines.slice(0, 2) : lines;
}

function stageText({ state, now }: ViewInput): readonly Span[] {
  const stage = state.result === null ? state.stage : `finished: ${state.result.reason}, exit ${state.result.exit}`;
  const end = state.result === null ? now : Date.parse(state.result.at);
  const time = state.startedAt === null ? '' : `  ${precise(end - Date.parse(state.startedAt))}`;
  const tone =
    state.result === null ? (state.stage === 'stopping' ? 'warn' : 'active') : state.result.exit === 0 ? 'good' : 'bad';
  return [
    { text: stage, tone },
    { text: time, tone: 'plain' },
  ];
}

function counts({ counts: count }: Listing): readonly Span[] {
  const parts: readonly (Span | false)[] = [
    { text: `${count.done} of ${count.total} done`, tone: count.done === count.total ? 'good' : 'plain' },
    count.needsHuman > 0 && {
      text: `${count.needsHuman} ${count.needsHuman === 1 ? 'needs' : 'need'} a human`,
      tone: 'bad',
    },
    { text: `${count.running} running`, tone: 'plain' },
    count.ready > 0 && { text: `${count.ready} ready`, tone: 'plain' },
    count.waiting > 0 && { text: `${count.waiting} waiting`, tone: 'plain' },
    count.wontfix > 0 && { text: `${count.wontfix} wontfix`, tone: 'dim' },
  ];
  return parts
    .filter((part) => part !== false)
    .flatMap((part, index) => (index === 0 ? [part] : [{ text: ', ', tone: 'dim' as const }, part]));
}

/** Beside the counts: what was spent comes before what does not change, and that is whole or not there. */
function factsOf(state: RunState, room: number): Span {
  const spent = state.spent === null ? '' : spentOf(state.spent);
  const fixed = `${state.concurrency} at once${state.tip === null ? '' : `, tip ${shortOid(state.tip)}`}`;
  const parts = spent === '' ? [fixed] : [`${spent}, ${fixed}`, spent, fixed];
  return { text: parts.find((text) => text.length <= room) ?? fixed, tone: 'dim' };
}

/** The sum, and the budget that is nearest to its end. */
function spentOf({ sum, budgets }: SpentFacts): string {
  const [tightest] = [...budgets].sort((left, right) => right.spent / right.limit - left.spent / left.limit);
  if (tightest !== undefined) return formatStanding(tightest);
  return isUnknown(sum) ? '' : formatSpending(sum);
}

/** The one thing worth a row of its own: why it stops, what to do next, what is done for all, or the newest warning. */
function messageOf(state: RunState): Span | null {
  if (state.result !== null) {
    const last = state.result.lines.findLast((line) => line.trim() !== '');
    return last === undefined ? null : { text: printable(last), tone: 'strong' };
  }
  if (state.stopping !== null) return { text: `stopping: ${printable(state.stopping)}`, tone: 'warn' };
  if (state.whole !== null) return { text: printable(wholeText(state.whole)), tone: 'active' };
  const notice = state.notices.at(-1);
  if (notice === undefined) return null;
  const from = notice.issue === null ? '' : `${notice.issue}: `;
  return { text: from + printable(notice.message), tone: notice.level === 'warning' ? 'warn' : 'dim' };
}

function wholeText(whole: WholeWork): string {
  switch (whole.kind) {
    case 'plan':
      return `${whole.driver} plans ${whole.round === 0 ? 'the Issues' : `the gaps of round ${String(whole.round)}`}`;
    case 'waiting':
      return `${whole.what} waits: ${whole.reason}`;
    case 'gate':
      return `gate ${whole.gate}${whole.driver === null ? '' : ` by ${whole.driver}`} on ${whole.on === 'spec' ? 'the whole Spec' : 'its base'}`;
    default:
      return unreachable(whole);
  }
}

function footer(input: ViewInput, listing: Listing): Line {
  const { text, tone } = footText(input, listing);
  return [{ text: truncate(text, input.columns, ellipsisOf(input.unicode)), tone }];
}

function footText({ state, ui }: ViewInput, listing: Listing): Span {
  if (ui.asking) return { text: 'stop the run? y/n', tone: 'warn' };
  if (state.stage === 'stopping') return { text: 'Ctrl+C again ends everything at once', tone: 'warn' };
  switch (ui.focus) {
    case 'help':
      return { text: 'Esc back  Up/Down scroll', tone: 'dim' };
    case 'log':
      return { text: 'Esc back  Up/Down scroll  G follow  ? help', tone: 'dim' };
    case 'list': {
      const human = listing.needsHuman.size > 0 ? '  n needs a human' : '';
      return { text: `? help  Up/Down move  Enter log${human}  q quit`, tone: 'dim' };
    }
    default:
      return unreachable(ui.focus);
  }
}

interface EndsOptions {
  readonly cells: number;
  readonly unicode: boolean;
  /** Which end stays when both have no room. */
  readonly keep: 'left' | 'right';
}

/** A line with text at both ends; where both have no room the first text of the left end is cut, then one end goes. */
function ends(left: readonly Span[], right: readonly Span[], { cells, unicode, keep }: EndsOptions): Line {
  const ellipsis = ellipsisOf(unicode);
  const room = cells - widthOf(right) - 2;
  if (keep === 'left' && widthOf(left) > room) return cut(left, cells, ellipsis);
  if (room < 8) return cut(right, cells, ellipsis);
  const shown = cut(left, room, ellipsis);
  return [...shown, { text: ' '.repeat(room + 2 - widthOf(shown)), tone: 'plain' }, ...right];
}
