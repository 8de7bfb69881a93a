/**
 * What a person answers, as a docs-only commit on `giro/<spec>` (DESIGN 4, "How a human answers").
 *
 * A1 Only what asks can be answered: an Issue (or Spec) that is `needs-human`, or was answered and not taken up yet.
 * A2 The commit holds the whole packet that it answers, also when that stood on the Issue's own branch only.
 * A3 The same answer twice is one answer.
 * A4 Only a finding of the newest attempt that came from a verdict can be accepted, by its id.
 */
import { historyOf, replaceHistory, spliceFrontmatter } from '../config/splice.js';
import type { Finding, Issue, IssueState, Oid } from '../issue.js';
import { findingId } from '../issue.js';
import { specsFolder, type Spec } from '../spec.js';
import type { Git } from '../worktree/git-types.js';
import { answersOf, newestFindings } from './findings.js';
import { closings, readHistory, type HistoryEntry } from './history.js';
import { appendAnswer } from './history-entries.js';
import { docsCommit, type BranchFacts } from './integration.js';
import { newestRecord, readCheckpoint, readIssueText } from './read.js';
import { codeTree } from './tree.js';

/** What a person answers. */
export interface GivenAnswer {
  readonly kind: 'text' | 'retry' | 'accept' | 'wontfix';
  /** Their words; empty when there are none. */
  readonly text: string;
  /** Ids of findings, or unique beginnings of them. */
  readonly accept: readonly string[];
}

/** What became of an answer. */
export type Answering =
  | {
      readonly kind: 'answered';
      readonly commit: Oid;
      readonly accepted: readonly Finding[];
      readonly state: IssueState | 'needs-human';
    }
  | { readonly kind: 'already'; readonly state: IssueState | 'needs-human' }
  | { readonly kind: 'refused'; readonly why: string; readonly hint: string };

/** Writes the commit of an answer to an Issue; moving the branch to it is the caller's. */
export async function answerIssue(
  facts: BranchFacts,
  request: {
    readonly tip: Oid;
    readonly spec: Spec;
    readonly issue: Issue;
    readonly branch: Oid | null;
    readonly answer: GivenAnswer;
  },
): Promise<Answering> {
  const { tip, spec, issue, answer } = request;
  const asking = await askingOf(facts.git, request);
  if (asking.kind === 'refused') return asking;
  const dependents = spec.issues.filter((one) => one.state !== 'wontfix' && one.dependsOn.includes(issue.id));
  if (answer.kind === 'wontfix' && dependents.length > 0) {
    const names = dependents.map(({ id }) => id).join(', ');
    return refused(
      `${names} ${dependents.length === 1 ? 'depends' : 'depend'} on ${issue.id}`,
      'take it out of their depends-on first, or give them up too',
    );
  }
  const given = written(asking, answer, facts.iso());
  if (given.kind !== 'written') return given;
  const state = answer.kind === 'wontfix' ? 'wontfix' : 'ready';
  const file = spliceFrontmatter(replaceHistory(asking.text, given.history), { state, attempt: null, phase: null });
  const commit = await answerCommit(facts, { tip, path: issue.path, file, name: issue.id });
  return { kind: 'answered', commit, accepted: given.accepted, state };
}

/** Writes the commit of an answer to a Spec. It stays `needs-human` until a run takes it up. */
export async function answerSpec(
  facts: BranchFacts,
  request: { readonly tip: Oid; readonly spec: Spec; readonly answer: GivenAnswer },
): Promise<Answering> {
  const { tip, spec, answer } = request;
  const path = `${specsFolder}/${spec.slug}/SPEC.md`;
  const text = (await readIssueText(facts.git, tip, path)) ?? '';
  if (answer.kind === 'wontfix') return refused('a Spec cannot be given up', 'give up its Issues one by one');
  if (spec.state !== 'needs-human')
    return refused(`${spec.slug} asks nothing: it is ${spec.state}`, `see: giro status ${spec.slug}`);
  const entries = readHistory(historyOf(text));
  // Only Issues ask: nobody would hear what is said to the Spec.
  const packet = entries.findLastIndex((entry) => entry.kind === 'escalated');
  const asks = spec.issues.filter((issue) => issue.state === 'needs-human').map(({ id }) => `${spec.slug}/${id}`);
  const isOpen = packet >= 0 && entries.slice(packet + 1).every((entry) => entry.kind === 'answered');
  if (!isOpen && asks.length > 0)
    return refused(
      `${spec.slug} itself asks nothing: ${asks.join(', ')} ${asks.length === 1 ? 'does' : 'do'}`,
      `answer that: giro answer ${asks[0] ?? ''} "<text>"`,
    );
  const asking = { history: historyOf(text), entries, state: 'needs-human' as const };
  const given = written(asking, answer, facts.iso());
  if (given.kind !== 'written') return given;
  const file = replaceHistory(text, given.history);
  const commit = await answerCommit(facts, { tip, path, file, name: spec.slug });
  return { kind: 'answered', commit, accepted: given.accepted, state: 'needs-human' };
}

/** The file and the History that an answer goes into. */
interface Asking {
  readonly kind: 'asking';
  readonly text: string;
  readonly history: string;
  readonly entries: readonly HistoryEntry[];
  readonly state: IssueState;
}

async function askingOf(
  git: Git,
  request: { readonly tip: Oid; readonly spec: Spec; readonly issue: Issue; readonly branch: Oid | null },
): Promise<Asking | Extract<Answering, { kind: 'refused' }>> {
  const { tip, spec, issue, branch } = request;
  const text = (await readIssueText(git, tip, issue.path)) ?? '';
  const published = readHistory(issue.history);
  const own = branch === null ? null : await ownRecord(git, branch, issue.path);
  // Answered since: the branch does not know it yet.
  const isNewer = own !== null && closings(own.entries) >= closings(published) && issue.state !== 'done';
  const state = isNewer && own.state !== null && issue.state !== 'wontfix' ? own.state : issue.state;
  const history = isNewer && own.state === 'needs-human' ? own.history : issue.history;
  const entries = readHistory(history);
  const target = `${spec.slug}/${issue.id}`;
  const isWaiting = state === 'ready' && entries.at(-1)?.kind === 'answered';
  if (state === 'needs-human' || state === 'wontfix' || isWaiting)
    return { kind: 'asking', text, history, entries, state };
  if (state === 'done')
    return refused(`${target} is done`, `to have it done again, set state: ready in ${issue.path} and run again`);
  return refused(
    `${target} asks nothing: it is ${state === 'in-progress' ? 'being worked on' : state}`,
    `to change what is wanted, edit ${issue.path}; see: giro status ${target}`,
  );
}

async function ownRecord(
  git: Git,
  branch: Oid,
  path: string,
): Promise<{
  readonly state: IssueState | null;
  readonly history: string;
  readonly entries: readonly HistoryEntry[];
} | null> {
  const { record } = await newestRecord(git, branch);
  const text = record === null ? null : await readIssueText(git, record, path);
  if (text === null) return null;
  const history = historyOf(text);
  return { state: readCheckpoint(text).state, history, entries: readHistory(history) };
}

type Written =
  | { readonly kind: 'written'; readonly history: string; readonly accepted: readonly Finding[] }
  | Extract<Answering, { kind: 'already' | 'refused' }>;

function written(asking: Pick<Asking, 'history' | 'entries' | 'state'>, answer: GivenAnswer, at: string): Written {
  const { history, entries, state } = asking;
  if (state === 'wontfix') {
    if (answer.kind === 'wontfix') return { kind: 'already', state };
    return refused('it is wontfix', 'set state: ready in its file, and run again');
  }
  const accepted = acceptedNow(entries, answer.accept);
  if (accepted.kind === 'refused') return accepted;
  const text = answer.text.trim();
  const last = entries.at(-1)?.kind === 'answered' ? answersOf(entries).at(-1) : undefined;
  const known = new Set(last?.accepted.map(findingId));
  const isKnown =
    last !== undefined && answer.kind !== 'wontfix' && accepted.findings.every((one) => known.has(findingId(one)));
  if (isKnown && (text === '' || text === last.text)) return { kind: 'already', state };
  const told = appendAnswer(history, { at, how: howOf[answer.kind], text, accepted: accepted.findings });
  return { kind: 'written', history: told, accepted: accepted.findings };
}

const howOf: Readonly<Record<GivenAnswer['kind'], string>> = {
  text: 'giro answer; the budget is given back',
  retry: 'run again: giro answer --retry; the budget is given back',
  accept: 'giro answer --accept; the budget is given back',
  wontfix: 'giro answer --wontfix: given up',
};

function acceptedNow(
  entries: readonly HistoryEntry[],
  wanted: readonly string[],
): { readonly kind: 'found'; readonly findings: readonly Finding[] } | Extract<Answering, { kind: 'refused' }> {
  const known = newestFindings(entries).flatMap(({ finding, of }) => (of === 'verdict' ? [finding] : []));
  const findings: Finding[] = [];
  for (const id of new Set(wanted)) {
    const fitting = known.filter((finding) => findingId(finding).startsWith(id));
    const [finding] = fitting;
    if (finding === undefined || new Set(fitting.map(findingId)).size > 1)
      return refused(
        `there is ${finding === undefined ? 'no' : 'more than one'} finding ${id} in the newest attempt`,
        known.length === 0 ? 'nothing there can be accepted' : `known:\n${known.map(shownFinding).join('\n')}`,
      );
    findings.push(finding);
  }
  return { kind: 'found', findings };
}

function shownFinding(finding: Finding): string {
  return `  ${findingId(finding)}  ${finding.message}`;
}

async function answerCommit(
  facts: BranchFacts,
  request: { readonly tip: Oid; readonly path: string; readonly file: string; readonly name: string },
): Promise<Oid> {
  const { git } = facts;
  const { tip, path, file, name } = request;
  return docsCommit(facts, {
    tip,
    files: new Map([[path, file]]),
    checkpoint: 'answered',
    subject: `${name}: answered`,
    code: await codeTree(git, (await git.readCommit(tip)).tree),
  });
}

function refused(why: string, hint: string): Extract<Answering, { kind: 'refused' }> {
  return { kind: 'refused', why, hint };
}
