/** The commits of `giro/<spec>`: what `git log --first-parent` reads as the story of the Spec. */
import { historyOf, replaceHistory, spliceFrontmatter } from '../config/splice.js';
import type { GateNote, Oid, SpecSlug, Waived } from '../issue.js';
import { shortOid } from '../issue.js';
import { printable } from '../platform/text.js';
import { specsFolder, type SpecState } from '../spec.js';
import type { Git, TreeTarget } from '../worktree/git-types.js';
import { appendIntegration, noteSaved } from './history-entries.js';
import type { Intake } from './intake.js';
import type { Journal } from './journal.js';
import { readIssueText, type SpecFile } from './read.js';
import { codeTree, joinTree, specsTree, withFiles } from './tree.js';
import { commitMessage, type Checkpoint } from './trailers.js';

/** What every commit here needs to know. */
export interface BranchFacts {
  readonly git: Git;
  readonly spec: SpecSlug;
  /** What the branch was made from: the user's commit, or the proven tip of a Spec that this one depends on. */
  readonly base: Oid;
  readonly now: () => number;
  readonly iso: () => string;
  /** Version of giro, for the record. */
  readonly giro: string;
}

/** Takes the Spec's folder in: what was read, exactly, and then the branch's own version of it. */
export async function intakeCommit(
  facts: BranchFacts,
  request: {
    readonly parent: Oid;
    /** `null`: there was no such folder, and nothing is told of it. */
    readonly read: readonly SpecFile[] | null;
    readonly intake: Intake;
    readonly kind: 'snapshot' | 'import';
    /** The commit the user was on, where the branch is made from another one or takes over its code. */
    readonly userBase?: Oid;
    /** The branch the user was on, by its full name. */
    readonly baseBranch?: string | null;
  },
): Promise<Oid> {
  const { git, spec } = facts;
  const { parent, read, kind } = request;
  const { base } = request.intake;
  const tree = (await git.readCommit(base ?? parent)).tree;
  const folder = `${specsFolder}/${spec}`;
  const emptied = await git.editTree(tree, new Map([[folder, null]]));
  const asRead = read === null ? [] : [await asReadCommit(facts, { parent, emptied, read })];
  const subject =
    kind === 'snapshot'
      ? `${spec}: snapshot of ${folder} on ${shortOid(parent)}`
      : `${spec}: ${importSubject(request.intake)}`;
  return git.writeCommit({
    tree: await withFiles(git, emptied, request.intake.files),
    parents: [parent, ...asRead, ...(base === undefined ? [] : [base])],
    message: message(facts, {
      ...{ checkpoint: kind, subject },
      trailers: {
        ...(request.userBase === undefined ? {} : { 'Giro-User-Base': request.userBase }),
        ...(typeof request.baseBranch === 'string' ? { 'Giro-Base-Branch': request.baseBranch } : {}),
      },
    }),
    at: facts.now(),
  });
}

/** A child of the tip before, so that no unrelated history gets into the person's. */
async function asReadCommit(
  facts: BranchFacts,
  request: { readonly parent: Oid; readonly emptied: Oid; readonly read: readonly SpecFile[] },
): Promise<Oid> {
  const { git, spec } = facts;
  const { parent, emptied, read } = request;
  return git.writeCommit({
    tree: await withFiles(git, emptied, new Map(read.map((file) => [file.path, file.bytes]))),
    parents: [parent],
    message: message(facts, { checkpoint: 'as-read', subject: `${specsFolder}/${spec} as read from the checkout` }),
    at: facts.now(),
  });
}

/** The landed commit of an Issue: this code tree on this tip, its story, and `state: done`. */
export async function landedCommit(
  facts: BranchFacts,
  request: {
    readonly tip: Oid;
    readonly code: Oid;
    readonly journal: Journal;
    readonly gates: readonly GateNote[];
    readonly waived?: readonly Waived[];
  },
): Promise<Oid> {
  const { git } = facts;
  const { tip, code, journal } = request;
  const file = await journal.fileAt(tip, 'done', (history) =>
    appendIntegration(history, {
      at: facts.iso(),
      tip,
      verdict: 'pass',
      gates: request.gates,
      findings: [],
      waived: request.waived ?? [],
    }),
  );
  const joined = await joinTree(git, code, await specsTree(git, (await git.readCommit(tip)).tree));
  return git.writeCommit({
    tree: await withFiles(git, joined, new Map([[journal.issue.path, file]])),
    parents: journal.commit === null ? [tip] : [tip, journal.commit],
    message: message(facts, {
      checkpoint: 'integrated',
      subject: `${journal.id}: ${journal.issue.title}`,
      body: `Integrated after ${String(journal.attempt)} ${journal.attempt === 1 ? 'attempt' : 'attempts'}.`,
      trailers: { 'Giro-Issue': journal.id, 'Giro-Code-Tree': code },
    }),
    at: facts.now(),
  });
}

/** What is merged through the lane beside the Issues. */
export interface Along {
  /** Its branch, as people write it. */
  readonly name: string;
  readonly tip: Oid;
  /** It is the proven work of another Spec. */
  readonly proved: boolean;
}

/** The commit that takes along the proven work of a Spec that this one depends on, or what moved on the person's branch. */
export async function stackedCommit(
  facts: BranchFacts,
  request: {
    readonly tip: Oid;
    readonly code: Oid;
    readonly along: Along;
    readonly gates: readonly GateNote[];
  },
): Promise<Oid> {
  const { git, spec } = facts;
  const { tip, code, along, gates } = request;
  const specs = await specsTree(git, (await git.readCommit(tip)).tree);
  const theirs = await specsTree(git, (await git.readCommit(along.tip)).tree);
  const common = await git.mergeBase(tip, along.tip);
  const before = common === null ? null : await specsTree(git, (await git.readCommit(common)).tree);
  const changed = theirs === null ? [] : await git.changedEntries(before, theirs);
  const folders = changed.flatMap(({ name, is }): [string, TreeTarget][] =>
    is === undefined || name === spec ? [] : [[`${specsFolder}/${name}`, is]],
  );
  return git.writeCommit({
    tree: await git.editTree(await joinTree(git, code, specs), new Map(folders)),
    parents: [tip, along.tip],
    message: message(facts, {
      checkpoint: 'stacked',
      subject: `${spec}: takes along ${along.name}${along.proved ? ', proved' : ''} at ${shortOid(along.tip)}`,
      body: gates.map(({ gate, verdict, note }) => `- gate ${gate}: ${verdict} · ${note}`).join('\n'),
      trailers: { 'Giro-Code-Tree': code },
    }),
    at: facts.now(),
  });
}

/** The docs-only commit that shows an escalated Issue where all stories can be read. */
export async function escalationCommit(
  facts: BranchFacts,
  request: {
    readonly tip: Oid;
    readonly journal: Journal;
    /** Where work is kept that the Issue's branch cannot hold. */
    readonly saved: string | null;
  },
): Promise<Oid> {
  const { git } = facts;
  const { tip, journal, saved } = request;
  const file = await journal.fileAt(tip, 'needs-human', (history) =>
    saved === null ? history : noteSaved(history, saved),
  );
  return docsCommit(facts, {
    tip,
    files: new Map([[journal.issue.path, file]]),
    checkpoint: 'escalated',
    subject: `${journal.id}: needs a human`,
    trailers: { 'Giro-Issue': journal.id },
    code: await codeTree(git, (await git.readCommit(tip)).tree),
  });
}

/** A docs-only commit that changes the Spec's own state and, with `append`, its History. */
export async function specStateCommit(
  facts: BranchFacts,
  request: {
    readonly tip: Oid;
    readonly state: SpecState;
    readonly checkpoint: Extract<Checkpoint, 'validated' | 'state'>;
    readonly subject: string;
    readonly append?: (history: string) => string;
    readonly trailers?: Readonly<Record<string, string>>;
  },
): Promise<Oid> {
  const { git, spec } = facts;
  const path = `${specsFolder}/${spec}/SPEC.md`;
  const text = (await readIssueText(git, request.tip, path)) ?? '';
  const told = request.append === undefined ? text : replaceHistory(text, request.append(historyOf(text)));
  return docsCommit(facts, {
    tip: request.tip,
    files: new Map([[path, spliceFrontmatter(told, { state: request.state })]]),
    checkpoint: request.checkpoint,
    subject: request.subject,
    ...(request.trailers === undefined ? {} : { trailers: request.trailers }),
    code: await codeTree(git, (await git.readCommit(request.tip)).tree),
  });
}

/** A commit that changes files of `docs/specs/` only. */
export async function docsCommit(
  facts: BranchFacts,
  request: {
    readonly tip: Oid;
    readonly files: ReadonlyMap<string, string>;
    readonly checkpoint: Checkpoint;
    readonly subject: string;
    readonly trailers?: Readonly<Record<string, string>>;
    readonly code: Oid;
  },
): Promise<Oid> {
  const { git } = facts;
  const tree = (await git.readCommit(request.tip)).tree;
  return git.writeCommit({
    tree: await withFiles(git, tree, request.files),
    parents: [request.tip],
    message: message(facts, {
      checkpoint: request.checkpoint,
      subject: request.subject,
      trailers: { ...request.trailers, 'Giro-Code-Tree': request.code },
    }),
    at: facts.now(),
  });
}

function message(
  facts: BranchFacts,
  parts: {
    readonly checkpoint: Checkpoint;
    readonly subject: string;
    readonly body?: string;
    readonly trailers?: Readonly<Record<string, string>>;
  },
): string {
  const { checkpoint } = parts;
  const version = checkpoint === 'integrated' || checkpoint === 'validated' ? { 'Giro-Version': facts.giro } : {};
  return commitMessage({ ...parts, trailers: { ...parts.trailers, ...version, 'Giro-Base': facts.base } });
}

function importSubject(intake: Intake): string {
  if (intake.edited.length > 0)
    return `edits of ${intake.edited.map((path) => printable(path.split('/').at(-1) ?? '')).join(', ')}`;
  if (intake.base !== undefined) return `run again on ${shortOid(intake.base)}`;
  return intake.answered.length > 0 ? 'run again: escalated Issues get their budget back' : 'run again';
}
