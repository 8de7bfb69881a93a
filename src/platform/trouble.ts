/** Trouble of the machine: the system has run out of something, or its disk fails. It is nobody's work, and no bug. */

/** What is wrong with the machine. */
export interface Trouble {
  /** In a few words: `the disk is full`. */
  readonly what: string;
  /** What to do about it. */
  readonly hint: string;
  /** What the system said, with the path where it gave one. */
  readonly detail: string;
}

const full = { what: 'the disk is full', hint: 'make room on it (df -h shows which)' };
const quota = { what: 'the disk quota is used up', hint: 'make room (quota -s shows it)' };
const readOnly = {
  what: 'the file system is read-only',
  hint: 'mount it so that it can be written; after an error of the disk the system makes it read-only (dmesg)',
};
const broken = { what: 'the disk has an error', hint: 'see what the system says of it (dmesg)' };
const files = {
  what: 'too many open files',
  hint: 'allow more (ulimit -n 4096), or run fewer at once (--concurrency 1)',
};
const memory = { what: 'no memory is left', hint: 'end something, or run fewer at once' };

/** Codes of the system, and the words that git, in the C locale, has for them. */
const kinds: readonly (readonly [code: string, words: string, kind: Omit<Trouble, 'detail'>])[] = [
  ['ENOSPC', 'No space left on device', full],
  ['EDQUOT', 'Disk quota exceeded', quota],
  ['EROFS', 'Read-only file system', readOnly],
  ['EIO', 'Input/output error', broken],
  ['EMFILE', 'Too many open files', files],
  ['ENFILE', 'Too many open files in system', files],
  ['ENOMEM', 'Cannot allocate memory', memory],
];

/** Tells the trouble that an error is, or was caused by; `null`: it is something else. */
export function troubleOf(error: unknown): Trouble | null {
  if (!(error instanceof Error)) return null;
  const code = 'code' in error ? error.code : undefined;
  const known = kinds.find(([name]) => name === code);
  if (known !== undefined) return { ...known[2], detail: error.message };
  // A program that was run (git) has only words.
  const said = 'stderr' in error && typeof error.stderr === 'string' ? troubleIn(error.stderr) : null;
  return said ?? troubleOf(error.cause);
}

/** The words stand at the end of a line, where no name of a file does. */
function troubleIn(text: string): Trouble | null {
  for (const line of text.split('\n')) {
    const end = line.trim().replace(/[.)]+$/, '');
    const known = kinds.find(([, words]) => end.endsWith(words));
    if (known !== undefined) return { ...known[2], detail: line.trim() };
  }
  return null;
}
