/** Mistakes in files, as a person reads them: place, line, underline and what to do. */
import type { Diagnostic } from '../failure.js';
import { printable } from '../platform/text.js';
import { nearest } from './nearest.js';

/** A file's text with the name a person knows it by. */
export interface SourceText {
  /** Path relative to the repository where possible. */
  readonly file: string;
  readonly text: string;
}

/** Where in a file something stands: a Diagnostic without its message. */
export type Place = Pick<Diagnostic, 'file' | 'line' | 'column' | 'length' | 'source'>;

const tabWidth = 4;
const widestSource = 100;

/** Finds the line and column of an offset, and clamps the length to that line. */
export function placeIn({ file, text }: SourceText, offset: number, length = 1): Place {
  const at = Math.max(0, Math.min(offset, text.length));
  let line = 1;
  let start = text.startsWith('\uFEFF') ? 1 : 0;
  for (let end = text.indexOf('\n'); end !== -1 && end < at; end = text.indexOf('\n', start)) {
    line += 1;
    start = end + 1;
  }
  const source = lineAt(text, start);
  const column = Math.max(0, Math.min(at - start, source.length));
  return {
    file,
    line,
    column: column + 1,
    length: Math.max(1, Math.min(length, source.length - column)),
    source,
  };
}

/** Finds the place of a 1-based line and column. */
export function placeAtLine({ file, text }: SourceText, line: number, column = 1): Place {
  const source = (text.replace(/^\uFEFF/, '').split('\n')[line - 1] ?? '').replace(/\r$/, '');
  return { file, line, column, length: 1, source };
}

function lineAt(text: string, start: number): string {
  const end = text.indexOf('\n', start);
  const line = text.slice(start, end === -1 ? text.length : end);
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

/** Says which of the allowed names was probably meant, and lists them. */
export function suggest(name: string, allowed: readonly string[], what: string): string {
  const [best] = nearest(name, allowed);
  const list = allowed.length === 0 ? '' : `${what}: ${allowed.join(', ')}`;
  return best === undefined ? list : `did you mean \`${best}\`? ${list}`;
}

/** Shows text of a file inside a message: quoted, on one line, cut when long. */
export function quote(text: string): string {
  const shown = [...text].length > 60 ? `${[...text].slice(0, 59).join('')}…` : text;
  return `\`${printable(shown)}\``;
}

/** Renders all mistakes, one block each, with a closing count. */
export function renderDiagnostics(list: readonly Diagnostic[]): string {
  if (list.length === 0) return '';
  const files = new Set(list.map((diagnostic) => diagnostic.file)).size;
  const count = `${plural(list.length, 'problem')} in ${plural(files, 'file')}`;
  return [...list.map(renderOne), `${count}\n`].join('\n');
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function renderOne(diagnostic: Diagnostic): string {
  const { file, line, column, message, hint } = diagnostic;
  const place = [printable(file), line, column].filter((part) => part !== undefined).join(':');
  const lines = [`${place}: ${printable(message)}`, ...excerpt(diagnostic)];
  const [first, ...rest] = hint === undefined || hint === '' ? [] : hint.split('\n').map(printable);
  if (first !== undefined) lines.push(`  fix: ${first}`, ...rest.map((text) => `       ${text}`));
  return lines.map((text) => `${text.trimEnd()}\n`).join('');
}

function excerpt({ source, line, column = 1, length = 1 }: Diagnostic): readonly string[] {
  if (source === undefined || line === undefined || source.trim() === '') return [];
  const from = Math.max(0, Math.min(column - 1, source.length));
  const start = from > widestSource - 20 ? from - 20 : 0;
  const cells = cellsOf(source.slice(start, start + widestSource), start);
  const before = cells.filter((cell) => cell.at < from).map((cell) => cell.width);
  const marked = cells.filter((cell) => cell.at >= from && cell.at < from + length).map((cell) => cell.width);
  const [prefix, suffix] = [start > 0 ? '…' : '', start + widestSource < source.length ? '…' : ''];
  const gutter = String(line);
  const lead = ' '.repeat(prefix.length + sum(before));
  return [
    `  ${gutter} | ${prefix}${cells.map((cell) => cell.shown).join('')}${suffix}`,
    `  ${' '.repeat(gutter.length)} | ${lead}${'^'.repeat(Math.max(1, sum(marked)))}`,
  ];
}

interface Cell {
  /** UTF-16 offset in the line. */
  readonly at: number;
  readonly shown: string;
  readonly width: number;
}

/** Cuts a line into what a terminal shows: tabs as spaces to the next stop, wide characters two columns. */
function cellsOf(source: string, start: number): readonly Cell[] {
  const cells: Cell[] = [];
  let at = start;
  let width = 0;
  for (const char of source) {
    const cell = char === '\t' ? ' '.repeat(tabWidth - (width % tabWidth)) : printable(char);
    const columns = cell === char ? columnsOf(char) : cell.length;
    cells.push({ at, shown: cell, width: columns });
    at += char.length;
    width += columns;
  }
  return cells;
}

const zeroWidth = /^\p{M}$/u;
const doubleWidth =
  /^[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303E\uFF01-\uFF60\uFFE0-\uFFE6]$/u;

function columnsOf(char: string): number {
  if (char <= '~') return 1;
  if (zeroWidth.test(char)) return 0;
  return doubleWidth.test(char) ? 2 : 1;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, next) => total + next, 0);
}
