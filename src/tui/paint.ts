/** From lines of plain data to text for the terminal. */
import type { Tone } from './status.js';
import { cellsOf, truncate } from './width.js';

/** Text of one meaning. */
export interface Span {
  readonly text: string;
  readonly tone: Tone;
}

/** One row of the screen. */
export type Line = readonly Span[];

const reset = '\u001b[0m';
const codes: Readonly<Record<Tone, string>> = {
  plain: '',
  strong: '\u001b[1m',
  dim: '\u001b[2m',
  good: '\u001b[32m',
  active: '\u001b[36m',
  warn: '\u001b[33m',
  bad: '\u001b[1;31m',
};

/** Writes a line as text; without colour nothing but its characters. */
export function paint(line: Line, color: boolean): string {
  if (!color) return line.map((span) => span.text).join('');
  return line.map((span) => (codes[span.tone] === '' ? span.text : codes[span.tone] + span.text + reset)).join('');
}

/** How many cells a line takes. */
export function widthOf(line: Line): number {
  return line.reduce((sum, span) => sum + cellsOf(span.text), 0);
}

/** Cuts a line to so many cells. */
export function cut(line: Line, cells: number, ellipsis: string): Line {
  const shown: Span[] = [];
  let left = cells;
  for (const span of line) {
    const text = truncate(span.text, left, ellipsis);
    shown.push({ ...span, text });
    if (text !== span.text) break;
    left -= cellsOf(text);
  }
  return shown;
}
