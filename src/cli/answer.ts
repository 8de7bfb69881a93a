/** `giro answer <issue>`: writes what a person answers onto `giro/<spec>`; the next run, or the one that is running, takes it up. */
import { randomBytes } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { Issue, Oid, SpecSlug } from '../issue.js';
import { findingId } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { removeTree } from '../platform/folders.js';
import { printable } from '../platform/text.js';
import type { Spec } from '../spec.js';
import { answerIssue, answerSpec, type Answering, type GivenAnswer } from '../store/answer.js';
import type { BranchFacts } from '../store/integration.js';
import { findBase } from '../store/intake.js';
import { lockOwner, takeLock, type RunLock } from '../store/lock.js';
import { readSpecAt } from '../store/read.js';
import { integrationRef, issueRef } from '../store/refs.js';
import { openGit } from '../worktree/git.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { writeInEditor } from './editor.js';
import { exitCodes, type ExitCode } from './exit.js';
import { renderFailure } from './failure-text.js';
import { checkedOutFailure, checkedOutIn } from './opening.js';
import { packetOf, packetText } from './packet-text.js';
import { write, type Terminal } from './show.js';
import { findIssue, parseTarget, someOf, type Target } from './target.js';
import { giroVersion } from './version.js';

/** What was typed. */
export interface AnswerOptions {
  readonly target: string;
  readonly text: readonly string[];
  readonly wontfix: boolean;
  readonly retry: boolean;
  readonly accept: readonly string[];
  readonly json: boolean;
  readonly folder: string;
}

/** Runs the command. */
export async function answer(options: AnswerOptions, terminal: Terminal): Promise<ExitCode> {
  const given = givenOf(options);
  if (!given.ok) return refuse(given.failure);
  const looked = await openGit({ folder: options.folder, own: terminal.env, runFolder: null });
  if (!looked.ok) return refuse(looked.failure);
  const { commonDir } = looked.value;
  await looked.value.close();
  const runFolder = join(commonDir, 'giro', 'runs', `answer-${randomBytes(4).toString('hex')}`);
  const git = await openGit({ folder: options.folder, own: terminal.env, runFolder });
  if (!git.ok) return refuse(git.failure);
  try {
    const done = await answerIn(git.value, options, { given: given.value, terminal });
    if (!done.ok) return refuse(done.failure);
    write(terminal, options.json ? `${JSON.stringify(done.value)}\n` : shown(done.value));
    return exitCodes.proof;
  } finally {
    await git.value.close();
    await removeTree(runFolder);
  }
}

function refuse(failure: Failure): ExitCode {
  process.stderr.write(`${renderFailure(failure)}\n`);
  return exitCodes.error;
}

/** Longer than anybody reads; a text beyond that belongs into the Issue. */
const longestAnswer = 32 * 1024;

function givenOf(options: AnswerOptions): Result<GivenAnswer, Failure> {
  const { wontfix, retry, accept } = options;
  const text = options.text.join(' ').trim();
  const flags = [wontfix, retry, accept.length > 0].filter(Boolean).length;
  if (flags > 1) return usage('--wontfix, --retry and --accept do not go together', 'give one of them');
  const wrong = accept.find((id) => !/^[0-9a-f]{4,8}$/.test(id));
  if (wrong !== undefined)
    return usage(
      `${JSON.stringify(wrong)} is not the id of a finding`,
      'they are the eight digits in brackets; write the text before --accept',
    );
  if (text.length > longestAnswer)
    return usage(
      'the text is too long for an answer',
      'edit the Issue instead: its whole text goes to the next attempt',
    );
  const kind = wontfix ? 'wontfix' : retry ? 'retry' : accept.length > 0 ? 'accept' : 'text';
  return ok({ kind, text, accept });
}

/** What `--json` prints. */
interface Done {
  readonly spec: SpecSlug;
  readonly issue: string | null;
  readonly state: string;
  readonly already: boolean;
  readonly text: string;
  readonly accepted: readonly { readonly finding: string; readonly what: string }[];
  readonly commit: Oid | null;
  readonly running: { readonly pid: number; readonly host: string } | null;
  readonly next: string;
}

/** What the answer goes to. */
interface Addressed {
  readonly tip: Oid;
  readonly spec: Spec;
  /** `null`: the Spec itself. */
  readonly issue: Issue | null;
}

async function answerIn(
  git: OpenedGit,
  options: AnswerOptions,
  asked: { readonly given: GivenAnswer; readonly terminal: Terminal },
): Promise<Result<Done, Failure>> {
  const top = git.user.topLevel ?? options.folder;
  const target = parseTarget(options.target, { cwd: await realpath(options.folder), top });
  if (!target.ok) return target;
  if (target.value.kind === 'backlog')
    return usage('an answer goes to one Issue or Spec', 'such as: giro answer auth/03');
  const wanted = target.value;
  const first = await addressed(git, wanted);
  if (!first.ok) return first;
  const given = await withWords(git, first.value, asked);
  if (!given.ok) return given;
  const folder = await checkedOutIn(git, integrationRef(wanted.spec));
  if (folder !== null) return failed(checkedOutFailure(wanted.spec, folder));
  const lock = await shortLock(git, wanted.spec);
  if (!lock.ok) return lock;
  try {
    return await place(git, wanted, given.value);
  } finally {
    await lock.value.release();
  }
}

/** Trials against an engine that moves the branch meanwhile. */
const trials = 10;

/** Writes the answer and moves the branch to it, by compare-and-swap. */
async function place(
  git: OpenedGit,
  target: Exclude<Target, { kind: 'backlog' }>,
  given: GivenAnswer,
): Promise<Result<Done, Failure>> {
  const ref = integrationRef(target.spec);
  for (let trial = 0; trial < trials; trial += 1) {
    const to = await addressed(git, target);
    if (!to.ok) return to;
    const answered = await answerOnce(git, to.value, given);
    if (answered.kind === 'refused') return usage(answered.why, answered.hint);
    if (answered.kind === 'already') return ok(await doneOf(git, to.value, { given, answered }));
    const moved = await git.moveRef(ref, answered.commit, to.value.tip);
    if (moved.ok) return ok(await doneOf(git, to.value, { given, answered }));
    if (moved.failure.kind === 'ref-refused')
      return failed({ kind: 'environment', message: moved.failure.message, hint: 'try again' });
  }
  return failed({ kind: 'locked', message: `giro/${target.spec} keeps being moved`, hint: 'try again' });
}

async function answerOnce(git: OpenedGit, to: Addressed, answer: GivenAnswer): Promise<Answering> {
  const { tip, spec, issue } = to;
  const base = (await findBase(git, tip)) ?? git.user.head;
  const [now, iso] = [() => systemClock.now(), () => systemClock.iso()];
  const facts: BranchFacts = { git, spec: spec.slug, base, giro: giroVersion, now, iso };
  if (issue === null) return answerSpec(facts, { tip, spec, answer });
  const branch = await git.readRef(issueRef(spec.slug, issue.id));
  return answerIssue(facts, { tip, spec, issue, branch, answer });
}

async function addressed(
  git: OpenedGit,
  target: Exclude<Target, { kind: 'backlog' }>,
): Promise<Result<Addressed, Failure>> {
  const { spec: slug } = target;
  const tip = await git.readRef(integrationRef(slug));
  if (tip === null)
    return usage(`there is no branch giro/${slug}: nothing asks`, `run it first: giro implement ${slug}`);
  const parsed = await readSpecAt(git, tip, slug);
  if (!parsed.ok) return parsed;
  const { spec } = parsed.value;
  if (target.kind === 'spec') return ok({ tip, spec, issue: null });
  const ids = spec.issues.map(({ id }) => id);
  const id = findIssue(ids, target.issue);
  const issue = spec.issues.find((one) => one.id === id);
  if (issue !== undefined) return ok({ tip, spec, issue });
  return usage(`the Spec ${slug} has no Issue ${JSON.stringify(target.issue)}`, `known: ${someOf(ids)}`);
}

/** Without a word and without an option, the person writes it in their editor. */
async function withWords(
  git: OpenedGit,
  to: Addressed,
  { given, terminal }: { readonly given: GivenAnswer; readonly terminal: Terminal },
): Promise<Result<GivenAnswer, Failure>> {
  if (given.kind !== 'text' || given.text !== '') return ok(given);
  const target = nameOf(to);
  if (!terminal.stdin.isTTY || !terminal.stdout.isTTY) {
    return usage(
      'there is no answer, and no terminal for an editor',
      `say it: giro answer ${target} "<text>", or --retry, --wontfix, --accept <finding>`,
    );
  }
  // What cannot be answered is said before somebody writes a page.
  const tried = await answerOnce(git, to, { ...given, text: 'x' });
  if (tried.kind === 'refused') return usage(tried.why, tried.hint);
  const packet = await packetOf(git, to);
  const text = await writeInEditor(packet === null ? `${target} asks.` : packetText(packet), terminal.env);
  if (!text.ok) return text;
  if (text.value === '') return usage('nothing was written: nothing was answered', `try again: giro answer ${target}`);
  return ok({ ...given, text: text.value });
}

function nameOf({ spec, issue }: Addressed): string {
  return issue === null ? spec.slug : `${spec.slug}/${issue.id}`;
}

/** Whoever writes another answer at this moment is done in a moment. */
async function shortLock(git: OpenedGit, spec: SpecSlug): Promise<Result<RunLock, Failure>> {
  const { commonDir } = git;
  for (let trial = 0; ; trial += 1) {
    const lock = await takeLock({ commonDir, spec, run: 'answer', at: systemClock.iso(), kind: 'answer' });
    if (lock.ok || trial >= 40) return lock;
    await systemClock.sleep(50, new AbortController().signal);
  }
}

async function doneOf(
  git: OpenedGit,
  to: Addressed,
  parts: { readonly given: GivenAnswer; readonly answered: Exclude<Answering, { kind: 'refused' }> },
): Promise<Done> {
  const { given, answered } = parts;
  const { slug } = to.spec;
  const findings = answered.kind === 'answered' ? answered.accepted : [];
  return {
    spec: slug,
    issue: to.issue?.id ?? null,
    state: answered.state,
    already: answered.kind === 'already',
    text: given.text,
    accepted: findings.map((finding) => ({ finding: findingId(finding), what: finding.message })),
    commit: answered.kind === 'answered' ? answered.commit : null,
    running: await lockOwner(git.commonDir, slug),
    next: `giro implement ${slug}`,
  };
}

function shown(done: Done): string {
  const target = done.issue === null ? done.spec : `${done.spec}/${done.issue}`;
  const what = done.already ? `${target} has this answer already` : `answered ${target}`;
  const means =
    done.state === 'wontfix'
      ? 'it is given up'
      : done.issue === null
        ? 'the next run takes it up'
        : done.text !== ''
          ? 'the text goes to the next attempt, and the budget starts again'
          : 'the budget starts again';
  const next =
    done.running === null
      ? `next: ${done.next}`
      : `giro is running on ${done.spec} (process ${String(done.running.pid)} on ${printable(done.running.host)}) and takes it up`;
  const accepted = done.accepted.map((one) => `accepted ${one.finding}: ${printable(one.what)}`);
  return `${[`${what}: ${means}`, ...accepted, next].join('\n')}\n`;
}

function usage(message: string, hint: string): Result<never, Failure> {
  return failed({ kind: 'usage', message, hint });
}
