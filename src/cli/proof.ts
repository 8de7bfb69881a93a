/** `giro proof <target>`: checks a proof again, offline; exit 0 only if it holds for the current tip. */
import { realpath } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { IssueId, IssueState, Oid, SpecSlug } from '../issue.js';
import { shortOid } from '../issue.js';
import type { Policy } from '../policy.js';
import { statementOf } from '../report/proof.js';
import { notesRef } from '../store/notes.js';
import type { IssueProof, Proof } from '../record.js';
import { findValidated, landedProofs, readSpecProof } from '../store/proof.js';
import { readSpecAt } from '../store/read.js';
import { integrationRef } from '../store/refs.js';
import { openGit } from '../worktree/git.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { exitCodes, type ExitCode } from './exit.js';
import { renderFailure } from './failure-text.js';
import { readUserPolicy } from './user-policy.js';
import {
  checkDefinitions,
  checkIssueDefinitions,
  checkNotes,
  checkTip,
  checkTree,
  checkVerdicts,
  type ProofCheck,
} from './proof-check.js';
import { writeProofs } from './proof-notes.js';
import { runAgain, type RerunSubject } from './proof-rerun.js';
import { newRunId } from './run-id.js';
import { write, type Terminal } from './show.js';
import { provedTip } from './stacking.js';
import { findIssue, parseTarget, someOf, type Target } from './target.js';

/** What was typed. */
export interface ProofOptions {
  readonly target: string;
  /** Run the command gates again, on a clean checkout of the tip. */
  readonly rerun: boolean;
  readonly json: boolean;
  readonly folder: string;
}

/** Everything that was found. */
interface Checked {
  readonly checks: readonly ProofCheck[];
  /** The proof the target has; `null`: there is none. */
  readonly proof: Proof | null;
  /** Every proof whose note can be made anew. */
  readonly all: readonly Proof[];
}

/** Runs the command. */
export async function proof(options: ProofOptions, terminal: Terminal): Promise<ExitCode> {
  const looked = await openGit({ folder: options.folder, own: terminal.env, runFolder: null });
  if (!looked.ok) return refuse(looked.failure);
  const { commonDir, user } = looked.value;
  await looked.value.close();
  const { topLevel } = user;
  if (topLevel === null) return refuse(bareFailure);
  const target = parseTarget(options.target, { cwd: await realpath(options.folder), top: topLevel });
  if (!target.ok) return refuse(target.failure);
  if (target.value.kind === 'backlog') return refuse(backlogFailure);
  const runFolder = options.rerun ? join(commonDir, 'giro', 'runs', newRunId()) : null;
  const git = await openGit({ folder: options.folder, own: terminal.env, runFolder });
  if (!git.ok) return refuse(git.failure);
  try {
    const subject = await open(git.value, { spec: target.value.spec, top: topLevel, terminal });
    if (!subject.ok) return refuse(subject.failure);
    return await check(subject.value, target.value, { ...options, runFolder });
  } finally {
    await git.value.close();
  }
}

const bareFailure: Failure = {
  kind: 'environment',
  message: 'this is a bare repository: the gates that were proved stand in the giro.toml of a checkout',
  hint: 'run it in a clone or a worktree',
};

const backlogFailure: Failure = {
  kind: 'usage',
  message: 'a backlog has no proof of its own',
  hint: 'name one Spec, such as: giro proof auth',
};

function refuse(failure: Failure): ExitCode {
  process.stderr.write(`${renderFailure(failure)}\n`);
  return exitCodes.error;
}

async function open(
  git: OpenedGit,
  request: { readonly spec: SpecSlug; readonly top: string; readonly terminal: Terminal },
): Promise<Result<RerunSubject, Failure>> {
  const { spec, top, terminal } = request;
  const policy = await readUserPolicy({ top, own: terminal.env, processors: availableParallelism() });
  if (!policy.ok) return policy;
  const tip = await git.readRef(integrationRef(spec));
  if (tip !== null) return ok({ git, top, policy: policy.value, spec, tip, terminal });
  const message = `there is no branch giro/${spec}, so nothing is proved`;
  return failed({ kind: 'usage', message, hint: await whereElse(git, policy.value, spec) });
}

/** A clone has only what was fetched, and whoever merged a Spec may have deleted its branch. */
async function whereElse(git: OpenedGit, policy: Policy, spec: SpecSlug): Promise<string> {
  const remote = [...(await git.listRefs('refs/remotes/')).keys()].find((ref) => ref.endsWith(`/giro/${spec}`));
  if (remote !== undefined)
    return `make it from the one you fetched: git branch giro/${spec} ${remote.slice('refs/remotes/'.length)}`;
  const merged = await provedTip({ git, policy }, spec);
  if (merged.kind === 'proved')
    return `your commit has its proof: git branch giro/${spec} ${shortOid(merged.tip)}, and try again`;
  const known = [...(await git.listRefs('refs/heads/giro/')).keys()].map((ref) => ref.slice('refs/heads/giro/'.length));
  return known.length > 0 ? `there is: ${someOf(known)}` : `run it first: giro implement ${spec}`;
}

async function check(
  subject: RerunSubject,
  target: Exclude<Target, { kind: 'backlog' }>,
  options: ProofOptions & { readonly runFolder: string | null },
): Promise<ExitCode> {
  const found = target.kind === 'spec' ? await ofSpec(subject) : await ofIssue(subject, target.issue);
  if (!found.ok) return refuse(found.failure);
  const { proof, all } = found.value;
  const rerun = options.runFolder === null || proof === null ? [] : await runAgain(subject, options.runFolder);
  const checks = [...found.value.checks, ...rerun];
  const holds = proof !== null && checks.every((one) => one.holds);
  // What contradicts its commit is evidence, and stays as it is.
  const made = holds ? await writeProofs(subject.git, all) : 0;
  const name = target.kind === 'spec' ? `giro/${subject.spec}` : `${subject.spec}/${target.issue}`;
  show(subject, { json: options.json, checks, proof, holds, made, name });
  return holds ? exitCodes.proof : exitCodes.needsHuman;
}

async function ofSpec(subject: RerunSubject): Promise<Result<Checked, Failure>> {
  const { git, spec, tip, policy } = subject;
  const { validated, above } = await findValidated(git, tip);
  if (validated === null) {
    const detail = `nothing on giro/${spec} was validated; run: giro implement ${spec}`;
    return ok({ checks: [{ what: 'validation', holds: false, detail }], proof: null, all: [] });
  }
  const read = await readSpecProof(git, { spec, commit: validated });
  if (!read.ok)
    return ok({ checks: [{ what: 'validation', holds: false, detail: read.failure }], proof: null, all: [] });
  const proof = read.value;
  const states = await statesAt(git, tip, spec);
  const all = [proof, ...proof.issues];
  const checks = [
    checkIssues(states, proof.issues),
    await checkTip(git, tip, proof),
    await checkTree(git, proof),
    checkVerdicts('validate', proof.validated),
    ...(await landings(git, proof.issues)),
    checkDefinitions(policy, proof),
    await checkNotes(git, all),
  ];
  const moved = above.length === 0 ? [] : [aboveCheck(above.length, validated.oid)];
  return ok({ checks: [...checks, ...moved], proof, all });
}

/** Every landing with its tree and its verdicts; only what does not hold is told one by one. */
async function landings(git: OpenedGit, issues: readonly IssueProof[]): Promise<readonly ProofCheck[]> {
  const checks: ProofCheck[] = [];
  for (const issue of issues) {
    checks.push(await checkTree(git, issue), checkVerdicts(`the landing of ${issue.issue}`, issue.integrated));
  }
  const broken = checks.filter(({ holds }) => !holds);
  if (broken.length > 0) return broken;
  const detail = `${String(issues.length)}, each with the tree that passed and its green gates`;
  return [{ what: 'the landings', holds: true, detail }];
}

/** Commits above change nothing of the proof as long as the tree is the proven one; they are told. */
function aboveCheck(count: number, validated: Oid): ProofCheck {
  const commits = `${String(count)} ${count === 1 ? 'commit' : 'commits'}`;
  return { what: 'commits since', holds: true, detail: `${commits} above the validated ${shortOid(validated)}` };
}

async function statesAt(git: OpenedGit, tip: Oid, spec: SpecSlug): Promise<ReadonlyMap<IssueId, IssueState> | null> {
  const read = await readSpecAt(git, tip, spec);
  return read.ok ? new Map(read.value.spec.issues.map(({ id, state }) => [id, state])) : null;
}

function checkIssues(states: ReadonlyMap<IssueId, IssueState> | null, landed: readonly IssueProof[]): ProofCheck {
  const what = 'the Issues';
  if (states === null) return { what, holds: false, detail: 'the files of the Spec cannot be read at the tip' };
  const open = [...states].filter(([, state]) => state !== 'done' && state !== 'wontfix');
  if (open.length > 0) return { what, holds: false, detail: open.map(([id, state]) => `${id} is ${state}`).join(', ') };
  const integrated = landed.filter(({ issue }) => states.get(issue) === 'done').length;
  return { what, holds: true, detail: `${String(states.size)}, of which ${String(integrated)} landed here` };
}

async function ofIssue(subject: RerunSubject, typed: string): Promise<Result<Checked, Failure>> {
  const { git, spec, tip, policy } = subject;
  const states = await statesAt(git, tip, spec);
  const id = findIssue([...(states?.keys() ?? [])], typed);
  if (id === undefined) {
    const known = someOf([...(states?.keys() ?? [])]);
    const message = `the Spec ${spec} has no Issue ${JSON.stringify(typed)}`;
    return failed({ kind: 'usage', message, hint: `known: ${known}` });
  }
  const landed = await landedProofs(git, spec, await git.readCommit(tip));
  const proof = landed.find(({ issue }) => issue === id);
  if (proof === undefined || states?.get(id) !== 'done') {
    const detail = `${id} is ${states?.get(id) ?? 'unknown'}; run: giro implement ${spec}/${id}`;
    return ok({ checks: [{ what: 'integration', holds: false, detail }], proof: null, all: [] });
  }
  const newest = await newestProof(subject, landed);
  const checks = [
    await checkTree(git, proof),
    checkVerdicts(`the landing of ${id}`, proof.integrated),
    await checkTip(git, tip, newest ?? proof),
    checkIssueDefinitions(policy, newest?.kind === 'issue' ? newest : proof),
    await checkNotes(git, [proof]),
  ];
  return ok({ checks, proof, all: [proof] });
}

/** What was verified last on the branch: for a tip above an Issue's landing, a later one says whether it is proven. */
async function newestProof({ git, tip }: RerunSubject, landed: readonly IssueProof[]): Promise<IssueProof | null> {
  const byCommit = new Map(landed.map((proof) => [proof.commit, proof]));
  for (let next: Oid | undefined = tip; next !== undefined;) {
    const found = byCommit.get(next);
    if (found !== undefined) return found;
    next = (await git.readCommit(next)).parents[0];
  }
  return null;
}

/** Those of the Spec and of its Issues; each Issue's with its name. */
function allWaivers(proof: Proof): readonly string[] {
  if (proof.kind === 'issue') return proof.waivers;
  return [...proof.issues.flatMap(({ issue, waivers }) => waivers.map((one) => `${issue} ${one}`)), ...proof.waivers];
}

function show(
  { terminal, spec, tip }: RerunSubject,
  result: {
    readonly json: boolean;
    readonly checks: readonly ProofCheck[];
    readonly proof: Proof | null;
    readonly holds: boolean;
    readonly made: number;
    readonly name: string;
  },
): void {
  const { checks, proof, holds, made, name } = result;
  if (result.json) {
    const statement = proof === null ? null : statementOf(proof);
    write(terminal, `${JSON.stringify({ spec, tip, holds, checks, statement })}\n`);
    return;
  }
  const waivers = proof === null ? [] : allWaivers(proof);
  const broken = checks.find((one) => !one.holds);
  const lines = [
    ...checks.map(({ what, holds: good, detail }) => `${good ? 'holds ' : 'BROKEN'}  ${what}: ${detail}`),
    ...waivers.map((waiver) => `waiver  ${waiver}`),
    ...(made === 0 ? [] : [`made    ${String(made)} missing ${made === 1 ? 'note' : 'notes'} in ${notesRef}`]),
    ...(holds ? [`share it: git push <remote> giro/${spec} ${notesRef}`] : []),
    holds
      ? `proof: ${name} holds at ${shortOid(tip)}${waivers.length === 0 ? '' : `, ${String(waivers.length)} waiver${waivers.length === 1 ? '' : 's'}`}`
      : `no proof: ${broken?.what ?? 'nothing is proved'} of ${name}; go on with: ${broken?.fix ?? `giro implement ${spec}`}`,
  ];
  write(terminal, `${lines.join('\n')}\n`);
}
