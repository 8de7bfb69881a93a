/** Reads git's machine formats (`-z`) into values. Pure. */
import { parseOid, type Oid } from '../issue.js';
import { decodeName } from './objects.js';
import type { CommitInfo, FileChange, LoggedCommit, TreeFile } from './git-types.js';

/** Splits at NUL; a NUL at the end ends the last piece. */
function splitNul(bytes: Buffer): readonly Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (let end = bytes.indexOf(0); end >= 0; end = bytes.indexOf(0, at)) {
    pieces.push(bytes.subarray(at, end));
    at = end + 1;
  }
  if (at < bytes.length) pieces.push(bytes.subarray(at));
  return pieces;
}

/** Paths of `--name-only -z` and the like. */
export function parsePaths(bytes: Buffer): readonly string[] {
  return splitNul(bytes).map(decodeName);
}

/** Lines of `ls-tree -r -z`. */
export function parseTreeList(bytes: Buffer): readonly TreeFile[] {
  return splitNul(bytes).map((line) => {
    const tab = line.indexOf(0x09);
    const [mode = '', , oid = ''] = line.toString('latin1', 0, tab).split(' ');
    return { mode, oid: parseOid(oid), path: decodeName(line.subarray(tab + 1)) };
  });
}

interface RawChange {
  readonly path: string;
  readonly oldMode: string;
  readonly newMode: string;
  readonly oldOid: string;
  readonly newOid: string;
  readonly letter: string;
}

/** Reads one raw record `:old new oid oid X`, whose path is the next piece. */
function parseRaw(record: Buffer, path: Buffer | undefined): RawChange {
  const fields = record.toString('latin1').trim().slice(1).split(' ');
  const [oldMode = '', newMode = '', oldOid = '', newOid = '', letter = ''] = fields;
  if (path === undefined || letter === '')
    throw new Error(`unreadable diff record ${JSON.stringify(record.toString())}`);
  return { path: decodeName(path), oldMode, newMode, oldOid, newOid, letter };
}

/** Output of `diff-tree -r -z --raw --numstat --no-renames`: first all raw records, then all counts. */
export function parseDiff(bytes: Buffer): readonly FileChange[] {
  const pieces = splitNul(bytes);
  const raw: RawChange[] = [];
  let at = 0;
  for (; pieces[at]?.[0] === colon; at += 2) raw.push(parseRaw(pieces[at] ?? Buffer.alloc(0), pieces[at + 1]));
  const counts = new Map(pieces.slice(at).map(parseCount));
  return raw.map(({ path, oldMode, newMode, oldOid, newOid, letter }) => {
    const count = counts.get(path) ?? { insertions: 0, deletions: 0, binary: false };
    const oids = { oldOid: oidOf(oldMode, oldOid), newOid: oidOf(newMode, newOid) };
    return { path, status: statusOf(letter), oldMode, newMode, ...oids, ...count };
  });
}

function oidOf(mode: string, oid: string): Oid | null {
  return mode === '000000' ? null : parseOid(oid);
}

const colon = 0x3a;

type Count = Pick<FileChange, 'insertions' | 'deletions' | 'binary'>;

function parseCount(record: Buffer): readonly [string, Count] {
  const first = record.indexOf(0x09);
  const second = record.indexOf(0x09, first + 1);
  const added = record.toString('latin1', 0, first);
  const count =
    added === '-'
      ? { insertions: 0, deletions: 0, binary: true }
      : { insertions: Number(added), deletions: Number(record.toString('latin1', first + 1, second)), binary: false };
  return [decodeName(record.subarray(second + 1)), count];
}

function statusOf(letter: string): FileChange['status'] {
  switch (letter.slice(0, 1)) {
    case 'A':
      return 'added';
    case 'D':
      return 'deleted';
    case 'M':
      return 'modified';
    case 'T':
      return 'type-changed';
    default:
      throw new Error(`unknown diff status ${letter}`);
  }
}

/** Format for `log -z` that `parseLog` reads: a mark no path can start a record with, the name, the message. */
export const logFormat = 'tformat:%x01%H%n%B';

/** Output of `log -z --raw --no-abbrev --no-renames` in `logFormat`. */
export function parseLog(bytes: Buffer): readonly LoggedCommit[] {
  const pieces = splitNul(bytes);
  const commits: { commit: Oid; message: string; changes: { path: string; oid: Oid | null }[] }[] = [];
  for (let at = 0; at < pieces.length; at++) {
    const piece = pieces[at] ?? Buffer.alloc(0);
    if (piece[0] === 1) {
      const [commit = '', ...message] = piece.toString('utf8', 1).split('\n');
      commits.push({ commit: parseOid(commit), message: message.join('\n'), changes: [] });
    } else {
      const { path, newMode, newOid } = parseRaw(piece, pieces[++at]);
      commits.at(-1)?.changes.push({ path, oid: oidOf(newMode, newOid) });
    }
  }
  return commits;
}

/** Format for `log -z` that `parseCommits` reads. */
export const commitFormat = 'tformat:%H%n%T%n%P%n%ct%n%B';

/** Output of `log -z` in `commitFormat`. */
export function parseCommits(bytes: Buffer): readonly CommitInfo[] {
  return splitNul(bytes).map((piece) => {
    const [oid = '', tree = '', parents = '', committedAt, ...message] = piece.toString('utf8').split('\n');
    return {
      oid: parseOid(oid),
      tree: parseOid(tree),
      parents: parents === '' ? [] : parents.split(' ').map(parseOid),
      message: message.join('\n'),
      committedAt: Number(committedAt),
    };
  });
}

/** Output of `merge-tree --write-tree -z --name-only`. */
export function parseMerge(bytes: Buffer): { tree: Oid; files: readonly string[]; messages: readonly string[] } {
  const pieces = splitNul(bytes);
  const tree = parseOid(pieces[0]?.toString('latin1') ?? '');
  const rest = pieces.slice(1);
  const end = rest.findIndex((piece) => piece.length === 0);
  const files = (end < 0 ? rest : rest.slice(0, end)).map(decodeName);
  return { tree, files, messages: end < 0 ? [] : parseMessages(rest.slice(end + 1)) };
}

/** Each message is a count, that many paths, a type and the text. */
function parseMessages(pieces: readonly Buffer[]): readonly string[] {
  const messages: string[] = [];
  for (let at = 0; at < pieces.length;) {
    const count = Number(pieces[at]?.toString('latin1'));
    if (!Number.isSafeInteger(count)) break;
    const text = pieces[at + count + 2]?.toString() ?? '';
    if (text.startsWith('CONFLICT')) messages.push(text.trim());
    at += count + 3;
  }
  return messages;
}

/** Content of `packed-refs`. */
export function parsePackedRefs(text: string): ReadonlyMap<string, Oid> {
  const refs = new Map<string, Oid>();
  for (const line of text.split('\n')) {
    const space = line.indexOf(' ');
    // `#` heads the file, `^` is the commit behind the tag of the line before.
    if (space > 0 && !line.startsWith('#') && !line.startsWith('^')) {
      refs.set(line.slice(space + 1), parseOid(line.slice(0, space)));
    }
  }
  return refs;
}

/** Output of `config -z --get-regexp`, keys in lower case; the last value of a key wins. */
export function parseConfig(bytes: Buffer): ReadonlyMap<string, string> {
  return new Map(
    splitNul(bytes).map((piece) => {
      const [key = '', ...value] = piece.toString().split('\n');
      // A key without `=` is true.
      return [key.toLowerCase(), value.length === 0 ? 'true' : value.join('\n')];
    }),
  );
}
