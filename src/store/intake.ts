/**
 * How a Spec's folder gets from the user's checkout onto `giro/<spec>`: the first snapshot, and every later edit.
 *
 * I1 What was read is kept exactly, as the second parent of the commit that takes it in, a child of the tip before.
 * I2 A file of the checkout is an edit only if its blob is neither the last one taken in nor one that giro wrote.
 * I3 Bodies and user-owned keys come from the person; `state`, `attempt`, `phase` and History stay giro's, unless the
 *    person changed `state` on purpose.
 * I4 Absence is a removal only of a file that the last intake had, and is reported.
 */
import { historyOf, replaceHistory, spliceFrontmatter } from '../config/splice.js';
import { parseOid, type IssueState, type Oid, type SpecSlug } from '../issue.js';
import type { Git } from '../worktree/git-types.js';
import { frameObject, nameObject } from '../worktree/objects.js';
import { appendAnswer } from './history.js';
import { readCheckpoint, readSpecFiles, type SpecFile } from './read.js';
import { checkpointOf, trailer } from './trailers.js';

/** The Spec's files as the next commit on `giro/<spec>` will hold them, and what changed. */
export interface Intake {
  /** Content by repository path; the whole folder. */
  readonly files: ReadonlyMap<string, string | Buffer>;
  /** Paths that a person changed, added or removed. */
  readonly edited: readonly string[];
  readonly removed: readonly string[];
  /** Issues that are integrated already, although their text was edited since. */
  readonly editedAfterwards: readonly string[];
  /** Issues that were escalated and are answered by this run. */
  readonly answered: readonly string[];
}

/** Prepares the first snapshot: `in-progress` and `needs-human` count as `ready`. */
export function firstIntake(files: readonly SpecFile[]): Intake {
  const taken = files.map((file): [string, string | Buffer] => {
    if (!isMarkdown(file.path)) return [file.path, file.bytes];
    const text = file.bytes.toString('utf8');
    if (isSpecFile(file.path)) return [file.path, setState(text, 'active')];
    if (!isIssueFile(file.path)) return [file.path, file.bytes];
    const { state } = readCheckpoint(text);
    return [file.path, state === 'in-progress' || state === 'needs-human' ? setState(text, 'ready') : text];
  });
  return { files: new Map(taken), edited: [], removed: [], editedAfterwards: [], answered: [] };
}

/** Prepares what a later run takes in. `checkout: null` means that the checkout has no such folder. */
export async function laterIntake(
  git: Git,
  request: {
    readonly spec: SpecSlug;
    readonly tip: Oid;
    readonly branches: readonly Oid[];
    readonly folder: string;
    readonly checkout: readonly SpecFile[] | null;
    /** The run before this one ended asking: naming the Spec again is the answer. */
    readonly answers: boolean;
    readonly at: string;
  },
): Promise<Intake> {
  const present = new Map((await readSpecFiles(git, request.tip, request.spec)).map((file) => [file.path, file.bytes]));
  const edits = request.checkout === null ? noEdits : await findEdits(git, { ...request, checkout: request.checkout });
  const files = new Map<string, string | Buffer>(present);
  const editedAfterwards: string[] = [];
  for (const [path, edit] of edits.changed) {
    const mine = present.get(path);
    files.set(path, takeEdit(path, edit, mine));
    if (mine !== undefined && isIssueFile(path) && stateOf(mine) === 'done' && stateOf(files.get(path)) === 'done') {
      editedAfterwards.push(path);
    }
  }
  const removed = edits.removed.filter((path) => isIssueFile(path) && stateOf(present.get(path)) !== 'done');
  for (const path of removed) files.delete(path);
  const answered = answer(files, request, new Set(edits.changed.keys()));
  const specFile = files.get(`${request.folder}/SPEC.md`);
  if (specFile !== undefined) files.set(`${request.folder}/SPEC.md`, setState(specFile.toString(), 'active'));
  return { files, edited: [...edits.changed.keys(), ...removed], removed, editedAfterwards, answered };
}

/** Finds the commit of the user that `giro/<spec>` was made from. */
export async function findBase(git: Git, tip: Oid): Promise<Oid | null> {
  for (let next: Oid | undefined = tip; next !== undefined;) {
    const commit = await git.readCommit(next);
    const base = trailer(commit.message, 'Giro-Base');
    if (base !== undefined) return parseOid(base);
    next = commit.parents[0];
  }
  return null;
}

interface Edit {
  readonly bytes: Buffer;
  /** As the last intake had it. */
  readonly before: Buffer | null;
}

interface Edits {
  readonly changed: ReadonlyMap<string, Edit>;
  readonly removed: readonly string[];
}

const noEdits: Edits = { changed: new Map(), removed: [] };

async function findEdits(
  git: Git,
  request: {
    readonly spec: SpecSlug;
    readonly tip: Oid;
    readonly branches: readonly Oid[];
    readonly folder: string;
    readonly checkout: readonly SpecFile[];
  },
): Promise<Edits> {
  const base = await findBase(git, request.tip);
  const log = await git.logBlobs([request.tip, ...request.branches], base === null ? [] : [base], request.folder);
  const written = new Set<string>();
  for (const commit of log) {
    if (checkpointOf(commit.message) === 'as-read') continue;
    for (const change of commit.changes) written.add(`${change.path}\0${change.oid ?? ''}`);
  }
  const lastRead = log.find((commit) => checkpointOf(commit.message) === 'as-read');
  const last = new Map(
    (lastRead === undefined ? [] : await readSpecFiles(git, lastRead.commit, request.spec)).map((file) => [
      file.path,
      file.bytes,
    ]),
  );
  const changed = new Map<string, Edit>();
  for (const file of request.checkout) {
    const before = last.get(file.path) ?? null;
    const name = nameObject(git.hash, frameObject('blob', file.bytes));
    if (before?.equals(file.bytes) === true || written.has(`${file.path}\0${name}`)) continue;
    changed.set(file.path, { bytes: file.bytes, before });
  }
  const here = new Set(request.checkout.map((file) => file.path));
  return { changed, removed: [...last.keys()].filter((path) => !here.has(path)) };
}

/** Joins a person's file with giro's: their text, giro's keys and History (I3). */
function takeEdit(path: string, edit: Edit, mine: Buffer | undefined): string | Buffer {
  if (!isMarkdown(path) || !(isIssueFile(path) || isSpecFile(path))) return edit.bytes;
  const text = edit.bytes.toString('utf8');
  if (mine === undefined) {
    const { state } = readCheckpoint(text);
    return isIssueFile(path) && state === 'in-progress' ? setState(text, 'ready') : text;
  }
  const ours = mine.toString('utf8');
  const state = isSpecFile(path) ? specState(ours) : issueState(text, edit.before?.toString('utf8') ?? null, ours);
  return spliceFrontmatter(replaceHistory(text, historyOf(ours)), { state, attempt: null, phase: null });
}

/** The person's `state` counts only when they changed it on purpose. */
function issueState(text: string, before: string | null, ours: string): IssueState {
  const wanted = readCheckpoint(text).state;
  const had = before === null ? null : readCheckpoint(before).state;
  const mine = readCheckpoint(ours).state ?? 'ready';
  if (wanted === null || wanted === had || wanted === 'in-progress' || wanted === 'needs-human') return mine;
  // An answer is more than a state: `answer` writes it.
  return wanted === 'ready' && mine === 'needs-human' ? mine : wanted;
}

function answer(
  files: Map<string, string | Buffer>,
  request: { readonly answers: boolean; readonly at: string },
  edited: ReadonlySet<string>,
): readonly string[] {
  const answered: string[] = [];
  for (const [path, content] of files) {
    if (!isIssueFile(path) || stateOf(content) !== 'needs-human') continue;
    if (!request.answers && !edited.has(path)) continue;
    const how = edited.has(path)
      ? 'the Issue was edited; the budget is given back'
      : 'run again; the budget is given back';
    const text = content.toString();
    const history = appendAnswer(historyOf(text), { at: request.at, how });
    files.set(path, setState(replaceHistory(text, history), 'ready'));
    answered.push(path);
  }
  return answered;
}

function setState(text: string, state: string): string {
  return spliceFrontmatter(text, { state, attempt: null, phase: null });
}

function stateOf(content: string | Buffer | undefined): IssueState | null {
  return content === undefined ? null : readCheckpoint(content.toString()).state;
}

function specState(text: string): string {
  return /^state:\s*(\S+)/m.exec(text)?.[1] ?? 'active';
}

function isMarkdown(path: string): boolean {
  return path.endsWith('.md');
}

function isSpecFile(path: string): boolean {
  return /^docs\/specs\/[^/]+\/SPEC\.md$/.test(path);
}

/** Says whether a path is that of an Issue file. */
function isIssueFile(path: string): boolean {
  return /^docs\/specs\/[^/]+\/issues\/\d+-[^/]+\.md$/.test(path);
}
