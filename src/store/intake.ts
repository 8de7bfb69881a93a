/**
 * How a Spec's folder gets from the user's checkout onto `giro/<spec>`: the first snapshot, and every later edit.
 *
 * I1 What was read is kept exactly, as the second parent of the commit that takes it in, a child of the tip before.
 * I2 A file of the checkout is an edit only if its text is neither the last one taken in nor one that giro wrote. What an
 *    intake took over unchanged is the person's text, not giro's: an older one put back is an edit.
 * I3 Bodies and user-owned keys come from the person; `state`, `attempt`, `phase` and History stay giro's, unless the
 *    person changed `state` on purpose.
 * I4 Absence is a removal only of a file that the last intake had, and is reported.
 * I5 What cannot be read is taken as it is, so that checking the files reports it.
 */
import { decode, readFields, splitFrontmatter } from '../config/frontmatter.js';
import { historyOf, replaceHistory, spliceFrontmatter } from '../config/splice.js';
import type { IssueState, Oid, SpecSlug } from '../issue.js';
import { parseOid, shortOid } from '../issue.js';
import type { SpecState } from '../spec.js';
import type { CommitInfo, Git, LoggedCommit } from '../worktree/git-types.js';
import { nameObject } from '../worktree/objects.js';
import { readBranches } from './facts.js';
import { budgetUsed, readHistory, sinceAnswer } from './history.js';
import { appendAnswer } from './history-entries.js';
import {
  listSpecFiles,
  newestRecord,
  readCheckpoint,
  readIssueText,
  readSpecFiles,
  type ListedFile,
  type SpecFile,
} from './read.js';
import { hasUsed } from './spec-history.js';
import { checkpointOf, trailer } from './trailers.js';
import { codeTree } from './tree.js';

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
  /** A person changed something since the run before ended: files, the Issues' branches, or `giro/<spec>` by an answer. */
  readonly touched: boolean;
  /** The person's commit that the Spec starts from instead of its base, which was red; absent: it keeps its base. */
  readonly base?: Oid;
}

/** Prepares the first snapshot: `in-progress` and `needs-human` count as `ready`, with their whole budget. */
export function firstIntake(files: readonly SpecFile[], at: string): Intake {
  const taken = files.map(({ path, bytes }): [string, string | Buffer] => {
    const text = isSpecFile(path) || isIssueFile(path) ? editable(bytes) : null;
    if (text === null) return [path, bytes];
    return [path, isSpecFile(path) ? setState(asNewSpec(text, at), 'active') : asNew(text, at)];
  });
  return { files: new Map(taken), edited: [], removed: [], editedAfterwards: [], answered: [], touched: true };
}

/** What a later intake starts from. */
export interface LaterRequest {
  readonly spec: SpecSlug;
  readonly tip: Oid;
  /** The branches of the Issues that are not at rest, by Issue. */
  readonly branches: ReadonlyMap<string, Oid>;
  readonly folder: string;
  /** `null`: the checkout has no such folder. */
  readonly checkout: readonly SpecFile[] | null;
  /** The folder at the tip, when it was read; absent: it is read here. */
  readonly present?: readonly SpecFile[];
  /** Issues that are done or `wontfix` there, as far as they were read. */
  readonly atRest?: ReadonlySet<string>;
  /** The commit the person is on. */
  readonly head?: Oid;
  /** Paths of what is answered by being named again, if it asks: Issues, and SPEC.md when the whole Spec is named. */
  readonly answers: readonly string[];
  /** Paths of Issues that ask and that a person changed in their worktree. */
  readonly mended?: readonly string[];
  /** False: a backlog came upon it. What the Spec as a whole asks is then answered only by a change. */
  readonly named?: boolean;
  readonly at: string;
}

/** Prepares what a later run takes in. */
export async function laterIntake(git: Git, request: LaterRequest): Promise<Intake> {
  const read = request.present ?? (await readSpecFiles(git, request.tip, request.spec));
  const present = new Map(read.map((file) => [file.path, file.bytes]));
  const byHand = await workByHand(git, request, present);
  const edits = await findEdits(git, request, { present, byHand });
  const files = new Map<string, string | Buffer>(present);
  const editedAfterwards: string[] = [];
  for (const [path, edit] of edits.changed) {
    const mine = present.get(path);
    files.set(path, takeEdit(path, edit, { mine, at: request.at }));
    if (isIssueFile(path) && stateOf(mine) === 'done' && stateOf(files.get(path)) === 'done')
      editedAfterwards.push(path);
  }
  const removed = edits.removed.filter(
    (path) => !isSpecFile(path) && !(isIssueFile(path) && stateOf(present.get(path)) === 'done'),
  );
  for (const path of removed) files.delete(path);
  const answered = answer(files, request, { edited: edits.changed, byHand });
  const edited = [...edits.changed.keys(), ...removed];
  const specPath = `${request.folder}/SPEC.md`;
  const specText = editable(files.get(specPath));
  const base = specText === null ? null : await repairedBase(git, request, specText);
  const mended = request.mended ?? [];
  const touched =
    edited.length + byHand.size + mended.length > 0 || base !== null || !(await isAsLeft(git, request.tip));
  if (specText !== null && knownSpecState(specText)) {
    const isAnswered = request.answers.includes(specPath) || (request.named === false && touched);
    files.set(specPath, setState(isAnswered ? answeredSpec(specText, request.at, base) : specText, 'active'));
  }
  return { files, edited, removed, editedAfterwards, answered, touched, ...(base === null ? {} : { base }) };
}

/**
 * Finds the commit of the person that repairs a base whose gates were red: they are on a later one, with other code, and
 * nothing was built on the base.
 */
async function repairedBase(git: Git, request: LaterRequest, specText: string): Promise<Oid | null> {
  const { tip, head, checkout } = request;
  if (head === undefined || checkout === null || readCheckpoint(specText).word !== 'needs-human') return null;
  const packet = readHistory(historyOf(specText)).findLast((entry) => entry.kind === 'escalated');
  if (!/^### Escalated · \S+ · (?:baseline-red|cannot-run-here)\n/.test(packet?.text ?? '')) return null;
  const base = await findBase(git, tip);
  if (base === null || base === head || !(await git.isAncestor(base, head))) return null;
  const [before, now, mine] = await Promise.all(
    [base, tip, head].map(async (commit) => codeTree(git, (await git.readCommit(commit)).tree)),
  );
  return now === before && mine !== before ? head : null;
}

/** Nobody wrote on the integration branch since a run ended there. */
async function isAsLeft(git: Git, tip: Oid): Promise<boolean> {
  const checkpoint = checkpointOf((await git.readCommit(tip)).message);
  return checkpoint === 'state' || checkpoint === 'validated';
}

/** Finds the commit of the user that `giro/<spec>` was made from. */
export async function findBase(git: Git, tip: Oid): Promise<Oid | null> {
  for (let next: Oid | undefined = tip; next !== undefined;) {
    const commit = await git.readCommit(next);
    const base = trailer(commit.message, 'Giro-Base');
    if (base !== undefined) return (await git.readCommit(parseOid(base))).oid;
    next = commit.parents[0];
  }
  return null;
}

/**
 * Finds the commit the person was on when `giro/<spec>` was made, which may have been made from the tip of another Spec, or
 * when it took their repair of its base.
 */
export async function findUserBase(git: Git, tip: Oid): Promise<Oid | null> {
  for (const { message } of await intakesOf(git, tip)) {
    const base = trailer(message, 'Giro-User-Base');
    if (base !== undefined) return (await git.readCommit(parseOid(base))).oid;
  }
  return findBase(git, tip);
}

/** Finds the branch the person was on when `giro/<spec>` was made, by its full name; `null`: on none, or nobody noted it. */
export async function findBaseBranch(git: Git, tip: Oid): Promise<string | null> {
  const { message = '' } = (await intakesOf(git, tip)).at(-1) ?? {};
  return checkpointOf(message) === 'snapshot' ? (trailer(message, 'Giro-Base-Branch') ?? null) : null;
}

/** Finds what was taken in down to the snapshot that the branch began with, newest first: one question, however long it is. */
function intakesOf(git: Git, tip: Oid): Promise<readonly CommitInfo[]> {
  const known = newestIntakes.get(git);
  const found = known?.tip === tip ? known.found : findIntakes(git, tip);
  newestIntakes.set(git, { tip, found });
  return found;
}

/** A run that starts asks for the same again and again. */
const newestIntakes = new WeakMap<Git, { readonly tip: Oid; readonly found: Promise<readonly CommitInfo[]> }>();

async function findIntakes(git: Git, tip: Oid): Promise<readonly CommitInfo[]> {
  const base = await findBase(git, tip);
  const ask = async (not: readonly Oid[]): Promise<readonly CommitInfo[]> =>
    (await git.firstParents(tip, not, '^Giro-Checkpoint: (snapshot|import)$')).filter(({ message }) =>
      ['snapshot', 'import'].includes(checkpointOf(message) ?? ''),
    );
  const isFirst = ({ message }: CommitInfo): boolean => checkpointOf(message) === 'snapshot';
  const near = base === null ? [] : await ask([base]);
  // A person's commit that has the branch in it may have become its base.
  const found = near.some(isFirst) ? near : await ask([]);
  const first = found.findIndex(isFirst);
  return first < 0 ? found : found.slice(0, first + 1);
}

interface Edit {
  readonly bytes: Buffer;
  /** The version it was made from, as far as that can be told. */
  readonly basis: Buffer | null;
}

interface Edits {
  readonly changed: ReadonlyMap<string, Edit>;
  readonly removed: readonly string[];
}

/** Issues with commits of a person on their branch: the file there, and as giro wrote it last below them. */
type ByHand = ReadonlyMap<string, { readonly text: string | null; readonly recorded: string | null }>;

async function workByHand(git: Git, request: LaterRequest, present: ReadonlyMap<string, Buffer>): Promise<ByHand> {
  const found = new Map<string, { readonly text: string | null; readonly recorded: string | null }>();
  for (const [issue, branch] of request.branches) {
    const path = `${request.folder}/issues/${issue}.md`;
    if (request.atRest?.has(issue) === true) continue;
    const state = stateOf(present.get(path));
    if (state === null || state === 'done' || state === 'wontfix') continue;
    const { record, byHand } = await newestRecord(git, branch);
    if (!byHand) continue;
    const recorded = record === null ? null : await readIssueText(git, record, path);
    found.set(path, { text: await readIssueText(git, branch, path), recorded });
  }
  return found;
}

async function findEdits(
  git: Git,
  request: LaterRequest,
  known: { readonly present: ReadonlyMap<string, Buffer>; readonly byHand: ByHand },
): Promise<Edits> {
  let versions: Promise<ReadonlyMap<string, readonly Oid[]>> | null = null;
  const last = new Map((await lastRead(git, request)).map(({ path, oid }) => [path, oid]));
  const changed = new Map<string, Edit>();
  const look = async (path: string, bytes: Buffer, was: Buffer | Oid | null): Promise<void> => {
    if (known.present.get(path)?.equals(bytes) === true) return;
    const name = nameObject(git.hash, 'blob', bytes);
    if (was === name || (was instanceof Buffer && was.equals(bytes))) return;
    // Only now: it reads all that was ever written there.
    const own = (await (versions ??= writtenVersions(git, request))).get(path) ?? [];
    if (own.some((oid) => oid === name)) return;
    const before = typeof was === 'string' ? await git.readBlob(was) : was;
    const theirs = [...(before === null ? [] : [before]), ...(await Promise.all(own.map((oid) => git.readBlob(oid))))];
    if (theirs.some((version) => sameText(path, version, bytes))) return;
    changed.set(path, { bytes, basis: basisOf(bytes, theirs) ?? before });
  };
  for (const [path, { text, recorded }] of known.byHand) {
    if (text !== null && recorded !== null && text !== recorded)
      await look(path, Buffer.from(text), Buffer.from(recorded));
  }
  for (const file of request.checkout ?? []) await look(file.path, file.bytes, last.get(file.path) ?? null);
  const here = new Set((request.checkout ?? []).map((file) => file.path));
  return { changed, removed: request.checkout === null ? [] : [...last.keys()].filter((path) => !here.has(path)) };
}

/** The versions of each file that giro wrote, newest first. */
async function writtenVersions(git: Git, request: LaterRequest): Promise<ReadonlyMap<string, readonly Oid[]>> {
  const base = await findBase(git, request.tip);
  const branches = await readBranches(git, request.spec);
  const tips = [...new Set([request.tip, ...request.branches.values(), ...branches.values()])];
  return versionsOf(git, await git.logBlobs(tips, base === null ? [] : [base], request.folder));
}

async function versionsOf(git: Git, log: readonly LoggedCommit[]): Promise<ReadonlyMap<string, readonly Oid[]>> {
  const byCommit = new Map(log.map((commit) => [commit.commit, commit]));
  const versions = new Map<string, Oid[]>();
  for (const { commit, message, changes } of log) {
    const checkpoint = checkpointOf(message);
    if (checkpoint === undefined || checkpoint === 'as-read') continue;
    const isIntake = checkpoint === 'snapshot' || checkpoint === 'import';
    const asRead = isIntake ? (await git.readCommit(commit)).parents[1] : undefined;
    const theirs = new Set((asRead === undefined ? [] : (byCommit.get(asRead)?.changes ?? [])).map(keyOf));
    for (const change of changes) {
      if (change.oid === null || theirs.has(keyOf(change))) continue;
      versions.set(change.path, [...(versions.get(change.path) ?? []), change.oid]);
    }
  }
  return versions;
}

function keyOf(change: { readonly path: string; readonly oid: Oid | null }): string {
  return `${change.path}\0${change.oid ?? ''}`;
}

/** The folder as the newest intake read it. */
async function lastRead(git: Git, request: LaterRequest): Promise<readonly ListedFile[]> {
  const newest = (await intakesOf(git, request.tip)).find(({ parents }) => parents[1] !== undefined);
  const asRead = newest?.parents[1];
  return asRead === undefined ? [] : listSpecFiles(git, asRead, request.spec);
}

/** Line ends may be the work of git's own conversion. */
function sameText(path: string, left: Buffer, right: Buffer): boolean {
  return isMarkdown(path) && withLineFeeds(left) === withLineFeeds(right);
}

function withLineFeeds(bytes: Buffer): string {
  return bytes.toString('utf8').replaceAll('\r\n', '\n');
}

/** The version whose History the edited text still carries. */
function basisOf(bytes: Buffer, known: readonly Buffer[]): Buffer | undefined {
  const text = editable(bytes);
  if (text === null) return undefined;
  const history = historyOf(text).trimEnd();
  return known.find((version) => {
    const other = editable(version);
    return other !== null && historyOf(other).trimEnd() === history;
  });
}

/** Joins a person's file with giro's: their text, giro's keys and History (I3). */
function takeEdit(
  path: string,
  edit: Edit,
  own: { readonly mine: Buffer | undefined; readonly at: string },
): string | Buffer {
  const text = isSpecFile(path) || isIssueFile(path) ? editable(edit.bytes) : null;
  if (text === null || (isIssueFile(path) && stateOf(text) === null)) return edit.bytes;
  const ours = editable(own.mine);
  if (ours === null) return isIssueFile(path) ? asNew(text, own.at) : text;
  if (isSpecFile(path)) return replaceHistory(text, historyOf(ours));
  const [before, state] = [stateOf(ours), issueState(text, edit.basis, ours)];
  const history = historyOf(ours);
  const reopened = state === 'ready' && (before === 'done' || before === 'wontfix');
  const told = reopened ? appendAnswer(history, { at: own.at, how: 'the Issue was set to ready again' }) : history;
  return spliceFrontmatter(replaceHistory(text, told), { state, attempt: null, phase: null });
}

/** The person's `state` counts only when they changed it on purpose. */
function issueState(text: string, basis: Buffer | null, ours: string): IssueState {
  const mine = stateOf(ours) ?? 'ready';
  const [wanted, had] = [stateOf(text), stateOf(basis ?? undefined)];
  if (wanted === null || had === null || wanted === had) return mine;
  if (wanted === 'in-progress' || wanted === 'needs-human') return mine;
  // What is integrated stays so, unless it is to be done again.
  if (mine === 'done' && wanted === 'wontfix') return mine;
  // An answer is more than a state: `answer` writes it.
  return wanted === 'ready' && mine === 'needs-human' ? mine : wanted;
}

function answer(
  files: Map<string, string | Buffer>,
  request: Pick<LaterRequest, 'answers' | 'mended' | 'at'>,
  done: { readonly edited: ReadonlyMap<string, unknown>; readonly byHand: ReadonlyMap<string, unknown> },
): readonly string[] {
  const paths: string[] = [];
  const candidates = new Set(
    [done.edited.keys(), done.byHand.keys(), request.mended ?? [], request.answers].flatMap((one) => [...one]),
  );
  for (const [path, content] of files) {
    if (!candidates.has(path) || !isIssueFile(path) || stateOf(content) !== 'needs-human') continue;
    const what = done.edited.has(path)
      ? 'the Issue was edited'
      : done.byHand.has(path)
        ? 'fixed by hand on its branch'
        : request.mended?.includes(path) === true
          ? 'changed by hand in its worktree'
          : request.answers.includes(path)
            ? 'run again'
            : null;
    const text = editable(content);
    if (what === null || text === null) continue;
    const history = appendAnswer(historyOf(text), { at: request.at, how: `${what}; the budget begins anew` });
    files.set(path, setState(replaceHistory(text, history), 'ready'));
    paths.push(path);
  }
  return paths;
}

/** An Issue that starts its life on this branch; what another life used of its budget is given back. */
function asNew(text: string, at: string): string {
  const { state } = readCheckpoint(text);
  if (state === 'done' || state === 'wontfix') return text;
  const history = historyOf(text);
  const used = budgetUsed(readHistory(history)) > 0;
  const told = used
    ? replaceHistory(text, appendAnswer(history, { at, how: 'taken in anew; the budget begins anew' }))
    : text;
  return state === 'in-progress' || state === 'needs-human' ? setState(told, 'ready') : told;
}

/** A Spec that starts its life on this branch. */
function asNewSpec(text: string, at: string): string {
  const history = historyOf(text);
  if (!hasUsed(readHistory(history))) return text;
  return replaceHistory(
    text,
    appendAnswer(history, { at, how: 'taken in anew; the budget and the rounds begin anew' }),
  );
}

/** What the Spec as a whole asked is answered by running it again; what only its Issues asked gives no rounds back. */
function answeredSpec(text: string, at: string, base: Oid | null): string {
  const history = historyOf(text);
  if (!sinceAnswer(readHistory(history)).some((entry) => entry.kind === 'escalated')) return text;
  const on = base === null ? '' : ` on ${shortOid(base)}`;
  return replaceHistory(
    text,
    appendAnswer(history, { at, how: `run again${on}; the budget and the rounds begin anew` }),
  );
}

/** The text of a file whose frontmatter can be edited; `null`: it is reported when the files are checked (I5). */
function editable(content: string | Buffer | undefined): string | null {
  if (content === undefined) return null;
  const source = decode('', Buffer.from(content));
  if (!source.ok) return null;
  const split = splitFrontmatter(source.value);
  if (!split.ok || readFields(source.value, split.value).problems.length > 0) return null;
  return source.value.text;
}

/** A word that is none is reported, not replaced. */
function knownSpecState(text: string): boolean {
  const { word } = readCheckpoint(text);
  return word === null || specStates.some((state) => state === word);
}

const specStates: readonly SpecState[] = ['draft', 'active', 'done', 'needs-human'];

function setState(text: string, state: string): string {
  return spliceFrontmatter(text, { state, attempt: null, phase: null });
}

function stateOf(content: string | Buffer | undefined): IssueState | null {
  return content === undefined ? null : readCheckpoint(content.toString()).state;
}

function isMarkdown(path: string): boolean {
  return path.endsWith('.md');
}

function isSpecFile(path: string): boolean {
  return /^docs\/specs\/[^/]+\/SPEC\.md$/.test(path);
}

function isIssueFile(path: string): boolean {
  return /^docs\/specs\/[^/]+\/issues\/\d+-[^/]+\.md$/.test(path);
}
