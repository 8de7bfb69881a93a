/** Text measured and cut in terminal cells, not in characters. */
import stringWidth from 'string-width';

/** How many cells a text takes. */
export function cellsOf(text: string): number {
  return text === '…' ? 1 : stringWidth(text);
}

/** Cuts a text to so many cells; what was cut shows as `ellipsis`, where that fits. */
export function truncate(text: string, cells: number, ellipsis: string): string {
  if (cells <= 0) return '';
  if (cellsOf(text) <= cells) return text;
  const mark = cellsOf(ellipsis) <= cells ? ellipsis : '';
  return takeCells(text, cells - cellsOf(mark)).trimEnd() + mark;
}

/** Fills a text with spaces to so many cells, or cuts it to them. */
export function fit(text: string, cells: number, ellipsis: string): string {
  const cut = truncate(text, cells, ellipsis);
  return cut + ' '.repeat(Math.max(0, cells - cellsOf(cut)));
}

/** Breaks a line into pieces of at most so many cells; an empty line is one piece. */
export function wrap(line: string, cells: number): readonly string[] {
  const pieces: string[] = [];
  let left = line;
  do {
    const piece = takeCells(left, Math.max(1, cells)) || firstCluster(left);
    pieces.push(piece);
    left = left.slice(piece.length);
  } while (left !== '');
  return pieces;
}

const plainAscii = /^[ -~]*$/;
const clusters = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** The longest beginning that takes at most so many cells, whole clusters only. */
function takeCells(text: string, cells: number): string {
  const window = text.slice(0, cells);
  if (plainAscii.test(window)) {
    const next = text.charCodeAt(cells);
    // A combining mark may follow; only then the clusters have to be looked at.
    if (Number.isNaN(next) || next < 0x7f) return window;
  }
  let taken = 0;
  let end = 0;
  for (const { segment } of clusters.segment(text)) {
    taken += cellsOf(segment);
    if (taken > cells) break;
    end += segment.length;
  }
  return text.slice(0, end);
}

function firstCluster(text: string): string {
  for (const { segment } of clusters.segment(text)) return segment;
  return '';
}
