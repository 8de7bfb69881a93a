/** The last lines of a run: what is proved, what is asked of whom, and what to type next. */
import type { IssueId, IssueState, Oid, SpecSlug } from '../issue.js';
import { shortOid } from '../issue.js';
import type { SpecEnd } from '../loop/spec-loop.js';
import { printable } from '../platform/text.js';
import { specsFolder } from '../spec.js';
import type { IssueView } from '../state.js';
import { rootCause, waitsForLease } from '../state.js';
import { formatSpent, type SpentFacts } from '../usage.js';
import { notesRef } from '../store/notes.js';
import { branchName, issueRef } from '../store/refs.js';
import { readWaivers, type Waiver } from '../store/waivers.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { exitCodes, type ExitCode } from './exit.js';
import { howToGoOn, type StoppedBy } from './stopping.js';

/** Everything the last lines are made from. */
export interface EndingParts {
  readonly end: SpecEnd;
  readonly spec: SpecSlug;
  readonly only: IssueId | null;
  readonly tip: Oid;
  readonly states: ReadonlyMap<IssueId, IssueState>;
  readonly views: ReadonlyMap<IssueId, IssueView>;
  readonly waivers: readonly Waiver[];
  readonly stray: readonly string[];
  readonly stopped: StoppedBy | null;
  /** What the run spent; `null`: no call of a model has ended. */
  readonly spent: SpentFacts | null;
  /** Tips of the Issues' branches; only when the run was stopped. */
  readonly branches: ReadonlyMap<string, Oid>;
  /** How `giro/<spec>` gets into the person's branch; see `bringIn`. */
  readonly bringIn: readonly string[];
}

/** How a run ended, for its exit code and its last lines. */
export interface Ending {
  readonly kind: 'proof' | 'needs-human' | 'stopped';
  /** The result in one line. */
  readonly summary: string;
  readonly exit: ExitCode;
  readonly lines: readonly string[];
}

/** Composes the end of a run. The very last line says the result. */
export function endingOf(parts: EndingParts): Ending {
  const stray = parts.stray.map((file) => `changed in your checkout during the run, not by giro: ${printable(file)}`);
  const spent = spentLines(parts.spent);
  const done = [...parts.states.values()].filter((state) => state === 'done').length;
  const total = parts.states.size;
  const standing = `${String(done)} of ${String(total)} Issues integrated; giro/${parts.spec} is at ${shortOid(parts.tip)}`;
  switch (parts.end.kind) {
    case 'proof': {
      const summary = `${proofWith(parts.waivers)}: ${standing}, verified`;
      const lines = [...stray, ...parts.bringIn, ...waiverLines(parts.waivers), ...spent, summary];
      return { kind: 'proof', summary, exit: exitCodes.proof, lines };
    }
    case 'stopped':
      return {
        kind: 'stopped',
        summary: standing,
        exit: exitCodes.needsHuman,
        lines: [
          ...stray,
          ...askedLines(parts).map((line) => `asks  ${line}`),
          ...openLines(parts),
          ...spent,
          standing,
          `stopped: ${parts.stopped?.why ?? parts.end.reason ?? 'on request'}; go on with: ${howToGoOn(parts.stopped, `giro implement ${parts.spec}`)}`,
        ],
      };
    case 'held': {
      const asked = askedLines(parts).map((line) => `asks  ${line}`);
      const summary = `needs a human: ${printable(parts.end.message)}`;
      const lines = [...stray, ...asked, ...waitingLines(parts), ...spent, standing, summary];
      return { kind: 'needs-human', summary, exit: exitCodes.needsHuman, lines };
    }
    case 'needs-human': {
      const asked = askedLines(parts);
      const validate = parts.end.validate.map((finding) => `validate: ${printable(finding.message)}`);
      const { asks } = parts.end;
      const first =
        asks !== null
          ? `the Spec: ${printable(asks.question)} (${asks.cause})`
          : parts.end.validate.length > 0
            ? 'the Spec as a whole is red'
            : (asked.at(0) ?? 'nothing is left to run, and nothing is done');
      return {
        kind: 'needs-human',
        summary: `needs a human: ${first}`,
        exit: exitCodes.needsHuman,
        lines: [
          ...stray,
          ...validate,
          ...asked.map((line) => `asks  ${line}`),
          ...waitingLines(parts),
          ...spent,
          standing,
          howToAnswer(parts),
          `needs a human: ${first}`,
        ],
      };
    }
  }
}

/** Says how a proof gets into the person's branch, and how it is checked again and shared. */
export async function howToTake(git: OpenedGit, spec: string, tip: Oid): Promise<readonly string[]> {
  return [
    ...(await bringIn(git, spec, tip)),
    `check it: giro proof ${spec}   (share it: git push <remote> giro/${spec} ${notesRef})`,
  ];
}

/** The last lines of a Spec that is proved already. */
export async function provedLines(git: OpenedGit, spec: SpecSlug, tip: Oid): Promise<readonly string[]> {
  const waivers = await readWaivers(git, spec, tip);
  const proof = `${proofWith(waivers)}: giro/${spec} is at ${shortOid(tip)}, verified; nothing to do`;
  return [...(await howToTake(git, spec, tip)), ...waiverLines(waivers), proof];
}

/** Says what the run spent, where somebody knows or a budget is set. */
export function spentLines(spent: SpentFacts | null): readonly string[] {
  const shown = spent === null ? '' : formatSpent(spent);
  return shown === '' ? [] : [`spent  ${shown}`];
}

/** Says "proof", and how many reds of it a person accepted. */
function proofWith(waivers: readonly Waiver[]): string {
  return waivers.length === 0
    ? 'proof'
    : `proof, ${String(waivers.length)} ${waivers.length === 1 ? 'waiver' : 'waivers'}`;
}

/** Names each waiver. */
function waiverLines(waivers: readonly Waiver[]): readonly string[] {
  return waivers.map(({ where, finding, by, what }) => {
    const whose = by === 'answer' ? 'accepted by answer' : 'accepted by giro.toml';
    return `waiver  ${where} [${finding}] ${whose}: ${printable(what)}`;
  });
}

function howToAnswer({ spec, states, views }: EndingParts): string {
  // Nobody asks anything that could be answered.
  if (states.size > 0 && [...states.values()].every((state) => state === 'wontfix'))
    return `every Issue is given up: set state: ready in one of their files or write another, then: giro implement ${spec}`;
  const first = [...views.values()].find((view) => view.progress.kind === 'needs-human')?.id;
  const target = first === undefined ? spec : `${spec}/${first}`;
  return `read it: giro status ${target}, answer it: giro answer ${target} "<text>", then: giro implement ${spec}`;
}

/** Gives the exact commands that bring `giro/<spec>` into the person's branch, tried before they are shown. */
export async function bringIn(git: OpenedGit, spec: string, tip: Oid): Promise<readonly string[]> {
  const { topLevel } = git.user;
  const { head, target } = await whereNow(git);
  if (await git.isAncestor(tip, head)) return [`${target} has giro/${spec} already`];
  const review = `read it:  git log --first-parent --stat giro/${spec}`;
  if ((await git.mergeBase(head, tip)) === null) {
    return [
      review,
      `take it:  git merge giro/${spec}   (not tried: in this shallow clone the two have no common commit)`,
    ];
  }
  const merged = await git.mergeTrees(head, tip);
  const merge = (await git.isAncestor(head, tip)) ? `git merge --ff-only giro/${spec}` : `git merge giro/${spec}`;
  if (merged.kind === 'conflict') {
    return [
      review,
      `take it:  git merge giro/${spec}   (tried: conflicts with ${target} in ${merged.files.map(printable).join(', ')}; resolve them by hand)`,
    ];
  }
  const inTheWay = topLevel === null ? [] : await obstacles(git, head, merged.tree);
  if (inTheWay.length === 0) return [review, `take it:  ${merge}   (tried: merges cleanly into ${target})`];
  const folder = `${specsFolder}/${spec}`;
  const onlySpec = inTheWay.every((file) => file.startsWith(`${folder}/`));
  const names = onlySpec ? [`${folder}/`] : inTheWay.map(printable);
  return [
    review,
    `in the way: ${names.join(', ')} ${onlySpec ? 'is' : 'are'} not committed here, and the merge would write there`,
    `take it:  git stash push --include-untracked -- ${(onlySpec ? [folder] : inTheWay).map(quoted).join(' ')} && ${merge}`,
    `          (the stash keeps your version of ${onlySpec ? 'the Spec' : 'these files'}: git stash show -p)`,
  ];
}

/** The person's commit and branch, which may have moved on during the run. */
async function whereNow(git: OpenedGit): Promise<{ readonly head: Oid; readonly target: string }> {
  const { topLevel, head, branch } = git.user;
  const now = (await git.user.headsOfWorktrees()).find((worktree) => worktree.path === topLevel);
  if (now === undefined || now.head === null) return { head, target: branch ?? 'your branch' };
  return { head: now.head, target: now.ref === null ? 'your branch' : branchName(now.ref) };
}

/** Uncommitted files that the merge would write, or that stand where it needs a folder. */
async function obstacles(git: OpenedGit, head: Oid, merged: Oid): Promise<readonly string[]> {
  const [uncommitted, changes] = [await git.user.uncommitted(), await git.diffTrees(head, merged)];
  const written = new Set(changes.map((change) => change.path));
  const folders = changes.map((change) => `${change.path}/`);
  return uncommitted.filter(
    (file) =>
      written.has(file) ||
      changes.some((change) => change.path.startsWith(`${file}/`)) ||
      folders.some((folder) => file.startsWith(folder)),
  );
}

function askedLines(parts: EndingParts): readonly string[] {
  return [...parts.views.values()].flatMap((view) => {
    const { progress } = view;
    if (progress.kind === 'needs-human') return [`${view.id}: ${printable(progress.question)}`];
    if (progress.kind === 'integrating' && progress.step === 'held')
      return [`${view.id}: ${printable(progress.message ?? 'it is held')}`];
    return [];
  });
}

/** What a run that was stopped leaves: cut off in its work, unfinished, or not started; and where its work is. */
function openLines(parts: EndingParts): readonly string[] {
  return [...parts.views.values()].flatMap(({ id, attempts, progress, log }) => {
    if (progress.kind === 'done' || progress.kind === 'needs-human' || progress.kind === 'wontfix') return [];
    const branch = parts.branches.get(id);
    const waits = progress.kind === 'waits-for-lease' ? `: ${printable(waitsForLease(progress.holder))}` : '';
    if (attempts === 0 || branch === undefined) return [`not started  ${id}${waits}`];
    const where = `what it has is on ${branchName(issueRef(parts.spec, id))} at ${shortOid(branch)}`;
    const cut = progress.kind === 'between' && progress.cut === true;
    const what = cut
      ? `abandoned    ${id}: attempt ${String(attempts)} was cut off and counts as none`
      : `unfinished   ${id}: after attempt ${String(attempts)}`;
    return [`${what}; ${where}${log === null ? '' : `, its log in ${printable(log)}`}`];
  });
}

function waitingLines(parts: EndingParts): readonly string[] {
  return [...parts.views.values()].flatMap((view) => {
    if (view.progress.kind === 'waits-for-lease')
      return [`${view.id} ${printable(waitsForLease(view.progress.holder))}`];
    if (view.progress.kind !== 'idle') return [];
    const root = rootCause(parts.views, view.id);
    return root === undefined
      ? []
      : [`${view.id} waits for ${root.on}${root.needsHuman ? ', which needs a human' : ''}`];
  });
}

function quoted(path: string): string {
  return /^[\w./@+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
