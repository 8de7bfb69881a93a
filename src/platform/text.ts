/**
 * Text from agents, gates and files made safe to show. An allow-list: what is not known to be harmless is written out as
 * `\u{1b}`, so that nothing can move the cursor, hide, reorder or overwrite what a person reads.
 */

/** Makes one safe line of a text: line ends become `⏎`, tabs spaces, everything unprintable an escape. */
export function printable(text: string): string {
  return escaped(text.replace(/\r\n|\n/g, '⏎').replaceAll('\t', ' '));
}

/**
 * Makes text of several lines safe, keeping `\n` and `\t`. Terminal sequences are removed wholly, so that coloured output
 * reads well; of a line overwritten with carriage returns the last version stays.
 */
export function printableLines(text: string): string {
  return text
    .replace(sequences, '')
    .split('\n')
    .map((line) => lastVersion(line).split('\t').map(escaped).join('\t'))
    .join('\n');
}

/** Keeps the end of a text, made safe: at most so many lines and bytes, whole lines where possible. */
export function tailLines(text: string, maxLines: number, maxBytes: number): string {
  const lines = printableLines(text).replace(/\s+$/, '').split('\n');
  const kept: string[] = [];
  let left = maxBytes;
  for (const line of lines.slice(-maxLines).reverse()) {
    const size = Buffer.byteLength(line) + (kept.length > 0 ? 1 : 0);
    if (size > left) {
      if (kept.length === 0) kept.push(lastBytes(line, maxBytes));
      break;
    }
    kept.push(line);
    left -= size;
  }
  return kept.reverse().join('\n');
}

// CSI; then OSC, DCS, SOS, PM and APC with their closing; then the short ones. Each has a 7-bit and an 8-bit form. A string
// sequence ends within its line: one that is never closed loses its first two characters and hides nothing.
const sequences =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]/g;

/** What stays of a line in a terminal after its carriage returns, as progress bars use them. */
function lastVersion(line: string): string {
  let end = line.length;
  while (line[end - 1] === '\r') end -= 1;
  return line.slice(line.lastIndexOf('\r', end - 1) + 1, end);
}

// Letters, marks, digits, punctuation and symbols, but none of those that Unicode says are not to be seen: zero-width and
// direction controls, fillers, tags. Spaces of any width become the plain one; a variation selector is no loss.
const unprintable = /(?:[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|\p{Default_Ignorable_Code_Point})/gu;
const selectors = /[\ufe0e\ufe0f]/g;
const spaces = /\p{Zs}/gu;

function escaped(text: string): string {
  return text
    .replace(selectors, '')
    .replace(spaces, ' ')
    .replace(unprintable, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

function lastBytes(line: string, maxBytes: number): string {
  const bytes = Buffer.from(line).subarray(-maxBytes);
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start).toString('utf8');
}

/** Quotes a text for a POSIX shell, as one word: for commands that a person is to copy. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
