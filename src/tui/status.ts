/** How a status looks: always a symbol and a word, so that it reads without colour and without Unicode. */
import { unreachable } from '../failure.js';
import { shortOid } from '../issue.js';
import { waitsForLease, type IssueStatus } from '../state.js';

/** What a piece of text means; `paint` knows how that looks. */
export type Tone = 'plain' | 'strong' | 'dim' | 'good' | 'active' | 'warn' | 'bad';

/** A status as it is shown. */
export interface Look {
  readonly word: string;
  readonly symbol: string;
  readonly tone: Tone;
  /** What it does now, what it waits for, or what is asked; may be empty. */
  readonly detail: string;
}

/** Width of the longest word. */
export const wordCells = 'needs-human'.length;

// Symbols that every terminal draws one cell wide, also where ambiguous characters are drawn wide.
const unicodeSymbols: Readonly<Record<string, string>> = {
  ready: '◦',
  waiting: '∙',
  working: '►',
  judging: '≟',
  retrying: '↻',
  integrating: '⇢',
  verifying: '≟',
  held: '⊘',
  done: '✓',
  'needs-human': '!',
  wontfix: '-',
};

const asciiSymbols: Readonly<Record<string, string>> = {
  ready: 'o',
  waiting: '.',
  working: '*',
  judging: '?',
  retrying: '~',
  integrating: '^',
  verifying: '?',
  held: '#',
  done: 'v',
  'needs-human': '!',
  wontfix: '-',
};

/** Shows a status. */
export function lookOf(status: IssueStatus, unicode: boolean): Look {
  const { word, tone, detail } = described(status);
  return { word, tone, detail, symbol: (unicode ? unicodeSymbols : asciiSymbols)[word] ?? ' ' };
}

function described(status: IssueStatus): Omit<Look, 'symbol'> {
  switch (status.kind) {
    case 'ready':
      return { word: 'ready', tone: 'plain', detail: '' };
    case 'waiting':
      return {
        word: 'waiting',
        tone: 'dim',
        detail: `waits for ${status.on}${status.needsHuman ? ', which needs a human' : ''}`,
      };
    case 'waits-for-lease':
      return { word: 'waiting', tone: 'dim', detail: waitsForLease(status.holder) };
    case 'working':
      return { word: 'working', tone: 'active', detail: '' };
    case 'judging':
      return { word: 'judging', tone: 'active', detail: status.gate === null ? '' : `gate ${status.gate}` };
    case 'between':
      return { word: 'retrying', tone: 'warn', detail: status.reason };
    case 'retrying':
      return { word: 'retrying', tone: 'warn', detail: `waits ${soon(status.inMs)}: ${status.reason}` };
    case 'integrating':
      return integrating(status);
    case 'done':
      return {
        word: 'done',
        tone: 'good',
        detail: status.commit === null ? '' : `commit ${shortOid(status.commit)}`,
      };
    case 'needs-human':
      return { word: 'needs-human', tone: 'bad', detail: status.question };
    case 'wontfix':
      return { word: 'wontfix', tone: 'dim', detail: '' };
    default:
      return unreachable(status);
  }
}

function integrating(status: Extract<IssueStatus, { kind: 'integrating' }>): Omit<Look, 'symbol'> {
  switch (status.step) {
    case 'queued':
      return { word: 'integrating', tone: 'active', detail: 'queued' };
    case 'verifying':
      return { word: 'verifying', tone: 'active', detail: status.message === null ? '' : `gate ${status.message}` };
    case 'held':
      return { word: 'held', tone: 'bad', detail: status.message ?? '' };
    default:
      return unreachable(status.step);
  }
}

/** A duration that seldom changes its text, for rows: `<10s`, `40s`, `12m`, `3h05m`, `2d04h`. */
export function coarse(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return ms < 10_000 ? '<10s' : `${Math.floor(ms / 10_000)}0s`;
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours}h${two(minutes % 60)}m` : `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

/** A duration to the second, for the one place that ticks: `4:05`, `1:02:03`. */
export function precise(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  return `${hours > 0 ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)}`;
}

function soon(ms: number): string {
  return ms < 60_000 ? `${Math.ceil(ms / 1000)}s` : coarse(ms);
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
