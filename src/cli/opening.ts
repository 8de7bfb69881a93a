/** How a run takes a Spec up: its files onto the branch, its Issues and their records as an earlier run left them. */
import type { Emit, IssueFacts } from '../event.js';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { Issue, IssueId, Oid } from '../issue.js';
import { shortOid } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { printable } from '../platform/text.js';
import { buildGraph } from '../scheduler/graph.js';
import { readFacts } from '../store/facts.js';
import { intakeCommit, type BranchFacts } from '../store/integration.js';
import type { Journal } from '../store/journal.js';
import { forksOf, openJournal, type Fork } from '../store/standing.js';
import { branchName, integrationRef, issueRef } from '../store/refs.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { detachCommand } from '../worktree/lane.js';
import { saveCommit } from '../worktree/salvage.js';
import { atRest, type Prepared } from './prepare.js';

/** What opening stands on. */
export interface OpeningPorts {
  readonly git: OpenedGit;
  readonly prepared: Prepared;
  readonly facts: BranchFacts;
  /** The branch that the person is on, by its full name. */
  readonly baseBranch: string | null;
  readonly clock: Clock;
  readonly emit: Emit;
}

/** The Issues of a run. */
export interface OpenedSpec {
  readonly tip: Oid;
  readonly issues: readonly Issue[];
  readonly issueFacts: readonly IssueFacts[];
  /** The integration branch was made by this run. */
  readonly fresh: boolean;
}

/** Says what a person should know before anything starts, one line each. */
export function sayNotices(ports: Pick<OpeningPorts, 'prepared' | 'emit'>, uncommitted: readonly string[]): void {
  const { intake, parsed } = ports.prepared;
  const { folder, ignored } = parsed.spec;
  const say = (level: 'info' | 'warning', message: string): void => {
    ports.emit({ type: 'run.notice', level, message: printable(message) });
  };
  if (ports.prepared.tip === null) {
    say(
      'info',
      'agents work in worktrees linked to this repository ([worktree] git = "linked"), without a sandbox: run agents you trust',
    );
  }
  const own = uncommitted.filter((file) => file.startsWith(`${folder}/`)).length;
  const elsewhere = uncommitted.length - own;
  if (own > 0) say('info', `${files(own)} of ${folder} not committed: taken as they stand in your checkout`);
  if (elsewhere > 0) say('info', `${files(elsewhere)} elsewhere not committed: not part of the base`);
  for (const file of ignored) say('info', `not an Issue, ignored: ${file.path} (${file.reason})`);
  if (intake.base !== undefined)
    say('info', `starts from your commit ${shortOid(intake.base)} instead of its base, which was not green`);
  for (const path of intake.removed) {
    const branch = path.startsWith(`${folder}/issues/`) ? '; its branch is kept' : '';
    say('warning', `${path} is gone from your checkout: taken out of the Spec${branch}`);
  }
  for (const path of intake.editedAfterwards) {
    say(
      'warning',
      `${path} was edited after it was integrated: it was built from the earlier text and is not run again`,
    );
  }
}

/** Puts the Spec's folder onto the integration branch, when there is something to put. */
export async function openSpec(ports: OpeningPorts): Promise<Result<OpenedSpec, Failure>> {
  const { git, prepared, facts, emit } = ports;
  const standsOn = await issueBranchInUse(ports);
  if (standsOn !== null) return failed(standsOn);
  const tip = await takeIn(ports);
  if (!tip.ok) return tip;
  // What was taken in is what was checked.
  const { spec } = prepared.parsed;
  const graph = buildGraph(spec.issues);
  const fresh = prepared.tip === null;
  // Branches of an earlier life of the Spec say nothing about this one.
  const branches = fresh ? new Map<string, Oid>() : prepared.branches;
  const issueFacts = await readFacts(git, { spec, branches, wave: (id) => graph.wave(id) });
  emit(
    fresh
      ? { type: 'spec.snapshotted', spec: prepared.spec, base: facts.base, tip: tip.value, issues: issueFacts }
      : { type: 'run.recovered', spec: prepared.spec, tip: tip.value, issues: issueFacts },
  );
  return ok({ tip: tip.value, issues: spec.issues, issueFacts, fresh });
}

/** Opens the record of an Issue. A branch that is integrated, or older than the Spec's, is not continued but never lost. */
export async function journalOf(
  ports: OpeningPorts,
  opened: OpenedSpec,
  request: { readonly issue: Issue; readonly tip: Oid; readonly fork?: Fork | undefined },
): Promise<Journal> {
  const { git, prepared, clock, emit } = ports;
  const { issue, tip } = request;
  const journalPorts = { git, spec: prepared.spec, clock };
  const branch = prepared.branches.get(issue.id) ?? null;
  if (branch === null) return openJournal(journalPorts, { issue, tip, branch, fresh: opened.fresh });
  const contained = request.fork?.contained ?? (await git.isAncestor(branch, tip));
  if (opened.fresh && !contained) {
    const saved = await saveCommit(git, { spec: prepared.spec, issue: issue.id }, branch);
    const message = `an older branch of ${issue.id} was found; its work is saved as ${saved} and not continued`;
    emit({ type: 'run.notice', level: 'warning', message, issue: issue.id });
  }
  const fork = request.fork?.base ?? null;
  return openJournal(journalPorts, { issue, tip, branch, fresh: opened.fresh || contained, fork });
}

/** Opens the records of all unfinished Issues that have a branch. */
export async function openJournals(ports: OpeningPorts, opened: OpenedSpec): Promise<Map<IssueId, Journal>> {
  const journals = new Map<IssueId, Journal>();
  const { tip } = opened;
  const { branches } = ports.prepared;
  const asleep = atRest(opened.issues);
  const open = opened.issues.filter(({ id }) => branches.has(id) && !asleep.has(id));
  const tips = open.flatMap(({ id }) => branches.get(id) ?? []);
  const forks = await forksOf(ports.git, tips, tip);
  for (const issue of open) {
    const branch = branches.get(issue.id);
    const fork = branch === undefined ? undefined : forks.get(branch);
    journals.set(issue.id, await journalOf(ports, opened, { issue, tip, fork }));
  }
  return journals;
}

/** Finds the folder whose HEAD a branch is; `null` when there is none. */
export async function checkedOutIn(git: OpenedGit, ref: string): Promise<string | null> {
  return (await git.user.headsOfWorktrees()).find((worktree) => worktree.ref === ref)?.path ?? null;
}

/** Says why a Spec whose branch is checked out cannot start. */
export function checkedOutFailure(spec: string, folder: string): Failure {
  return branchInUse(`giro/${spec}`, folder);
}

/** A person may stand on the branch of an Issue, having mended it there; going on from it would move it under them. */
async function issueBranchInUse({ git, prepared }: OpeningPorts): Promise<Failure | null> {
  const { branches, parsed, spec } = prepared;
  const open = parsed.spec.issues.filter((issue) => issue.state !== 'done' && issue.state !== 'wontfix');
  const refs = new Set(open.filter((issue) => branches.has(issue.id)).map((issue) => issueRef(spec, issue.id)));
  if (refs.size === 0) return null;
  const used = (await git.user.headsOfWorktrees()).find(({ ref }) => ref !== null && refs.has(ref));
  return used?.ref === undefined || used.ref === null ? null : branchInUse(branchName(used.ref), used.path);
}

function branchInUse(branch: string, folder: string): Failure {
  return {
    kind: 'environment',
    message: `${branch} is checked out in ${folder}; giro does not move a branch under you`,
    hint: `free it with: ${detachCommand(folder)}`,
  };
}

async function takeIn(ports: OpeningPorts): Promise<Result<Oid, Failure>> {
  const { git, prepared, facts, emit } = ports;
  const { tip, intake, before } = prepared;
  const idle = tip !== null && intake.edited.length === 0 && intake.answered.length === 0;
  if (idle && before !== 'needs-human') return ok(tip);
  const ref = integrationRef(prepared.spec);
  const folder = await checkedOutIn(git, ref);
  if (folder !== null) return failed(checkedOutFailure(prepared.spec, folder));
  const commit = await intakeCommit(facts, {
    parent: tip ?? facts.base,
    read: prepared.read,
    intake,
    kind: tip === null ? 'snapshot' : 'import',
    ...(tip === null ? { baseBranch: ports.baseBranch } : {}),
    ...((tip === null && facts.base !== git.user.head) || intake.base !== undefined ? { userBase: git.user.head } : {}),
  });
  const moved = await git.moveRef(ref, commit, tip);
  if (!moved.ok) {
    const { failure } = moved;
    const message =
      failure.kind === 'ref-refused' ? failure.message : `giro/${prepared.spec} moved while the run was starting`;
    return failed({ kind: 'environment', message, hint: 'run the same command again' });
  }
  if (tip !== null && intake.edited.length > 0)
    emit({ type: 'spec.imported', spec: prepared.spec, tip: commit, files: intake.edited });
  return ok(commit);
}

function files(count: number): string {
  return `${String(count)} ${count === 1 ? 'file' : 'files'}`;
}
