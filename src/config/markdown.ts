/** The little markdown that giro has to understand: headings outside code, and its own History section. */

/** One line of a text. */
export interface MarkdownLine {
  readonly start: number;
  /** Offset of the next line. */
  readonly next: number;
  /** Without its line end. */
  readonly text: string;
}

interface Fence {
  readonly char: string;
  readonly length: number;
  readonly closes: boolean;
}

/** Heading of the section that only giro writes. */
export const historyHeading = '## History';

/**
 * Walks over the lines outside fenced code blocks. A fence that is never closed is no block: otherwise one forgotten
 * fence would hide everything below it, giro's own History included.
 */
function* linesOutsideCode(text: string): Generator<MarkdownLine, void, undefined> {
  // An opening fence that found no end makes every later one of its kind and at least its length hopeless as well.
  const hopeless = new Map<string, number>();
  for (let start = 0; start < text.length;) {
    const line = lineAt(text, start);
    const fence = fenceOf(line.text);
    const end = fence === undefined ? undefined : endOfBlock(text, line.next, { fence, hopeless });
    if (end === undefined) yield line;
    start = end ?? line.next;
  }
}

function endOfBlock(
  text: string,
  from: number,
  { fence, hopeless }: { readonly fence: Fence; readonly hopeless: Map<string, number> },
): number | undefined {
  if (fence.length >= (hopeless.get(fence.char) ?? Infinity)) return undefined;
  for (let start = from; start < text.length;) {
    const line = lineAt(text, start);
    const close = fenceOf(line.text);
    if (close?.closes === true && close.char === fence.char && close.length >= fence.length) return line.next;
    start = line.next;
  }
  hopeless.set(fence.char, fence.length);
  return undefined;
}

const fencePattern = /^ {0,3}(`{3,}|~{3,})(.*)$/;

function fenceOf(line: string): Fence | undefined {
  if (!line.includes('```') && !line.includes('~~~')) return undefined;
  const match = fencePattern.exec(line);
  const [marks, info] = [match?.[1], match?.[2] ?? ''];
  if (marks === undefined || (marks.startsWith('`') && info.includes('`'))) return undefined;
  return { char: marks.slice(0, 1), length: marks.length, closes: info.trim() === '' };
}

/** Reads the line that starts at an offset. */
export function lineAt(text: string, start: number): MarkdownLine {
  const end = text.indexOf('\n', start);
  const next = end === -1 ? text.length : end + 1;
  const line = text.slice(start, end === -1 ? next : end);
  return { start, next, text: line.endsWith('\r') ? line.slice(0, -1) : line };
}

/** Cuts a body before its last `## History` heading; `history` is empty when there is none. */
export function splitHistory(body: string): { readonly body: string; readonly history: string } {
  let at = body.length;
  if (body.includes(historyHeading)) {
    for (const line of linesOutsideCode(body)) if (line.text === historyHeading) at = line.start;
  }
  return { body: body.slice(0, at), history: body.slice(at) };
}

/** Finds the first `# ` heading, on one line and without control characters. */
export function titleOf(body: string): string | undefined {
  for (const { text } of linesOutsideCode(body)) {
    const heading = text.startsWith('#') ? /^#[ \t]+(.*)$/.exec(text)?.[1] : undefined;
    const title = heading
      ?.replace(/[ \t]#+[ \t]*$/, '')
      .replace(/\p{Cc}+/gu, ' ')
      .trim();
    if (title !== undefined && title !== '') return title;
  }
  return undefined;
}

/** Says whether a body says anything beyond headings and comments. */
export function hasText(body: string): boolean {
  const open = body.indexOf('<!--');
  if (open === -1) return hasProse(body);
  return hasProse(body.slice(0, open)) || hasProse(withoutComments(body));
}

function hasProse(text: string): boolean {
  for (let start = 0; start < text.length;) {
    const line = lineAt(text, start);
    if (!/^\s*(?:#{1,6}(?:\s.*)?)?$/.test(line.text)) return true;
    start = line.next;
  }
  return false;
}

function withoutComments(text: string): string {
  let kept = '';
  let from = 0;
  for (let open = text.indexOf('<!--'); open !== -1; open = text.indexOf('<!--', from)) {
    const close = text.indexOf('-->', open + 4);
    if (close === -1) break;
    kept += text.slice(from, open);
    from = close + 3;
  }
  return kept + text.slice(from);
}

/** Finds where markers of an unfinished git merge stand, outside code blocks; `undefined` when there are none. */
export function conflictMarker(text: string): MarkdownLine | undefined {
  if (!text.includes('<<<<<<< ') || !text.includes('>>>>>>> ')) return undefined;
  for (const line of linesOutsideCode(text)) {
    if (!/^\uFEFF?<<<<<<< /.test(line.text)) continue;
    const rest = text.slice(line.next);
    const middle = /^=======\r?$/m.exec(rest)?.index;
    return middle !== undefined && /^>>>>>>> /m.test(rest.slice(middle)) ? line : undefined;
  }
  return undefined;
}
