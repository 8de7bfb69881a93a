/** `giro status [target]`: where everything stands, from refs and blobs alone; starts nothing and takes no lock. */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { parseSpecFolder } from '../config/issue-file.js';
import { historyOf } from '../config/splice.js';
import type { IssueFacts } from '../event.js';
import { failed, ok, type Diagnostic, type Failure, type Result } from '../failure.js';
import { parseSpecSlug, type IssueId, type Oid, type SpecSlug } from '../issue.js';
import { kindOf } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import { printable } from '../platform/text.js';
import { buildGraph, checkGraph } from '../scheduler/graph.js';
import { specsFolder, type Spec, type SpecState } from '../spec.js';
import { reduce, rootCause, emptyState, type RunState } from '../state.js';
import { readBranches, readStandings, type IssueBranches } from '../store/facts.js';
import { packetQuestion, readHistory, sinceAnswer, type HistoryEntry } from '../store/history.js';
import { findBase } from '../store/intake.js';
import { spendingOf } from '../store/ledger.js';
import { newestRecord, readIssueText, readSpecAt } from '../store/read.js';
import { branchName, integrationRef, issueRef } from '../store/refs.js';
import {
  addSpending,
  formatSpent,
  formatSpending,
  isUnknown,
  noSpending,
  type BudgetStanding,
  type Spending,
} from '../usage.js';
import type { OpenedGit } from '../worktree/git-types.js';
import type { Packet } from '../packet.js';
import { packetOf, packetText } from './packet-text.js';
import { exitCodes, type ExitCode } from './exit.js';
import { renderFailure } from './failure-text.js';
import { readCheckout } from './checkout-files.js';
import { leftRunning, type LeftProcess } from './leftovers.js';
import { leftLines, withLeft } from './status-left.js';
import { standingsNow, type Standings } from './status-budgets.js';
import { runningOf, stopFileOf, stopLines, type StopFileJson, type StoppingJson } from './status-stop.js';
import { write, type Terminal } from './show.js';
import { findIssue, parseTarget, someOf, type Target } from './target.js';

/** What was typed. */
export interface StatusOptions {
  readonly target: string | null;
  readonly json: boolean;
  readonly folder: string;
}

/** What the command works with. */
export interface StatusPorts {
  readonly terminal: Terminal;
  /** The repository, which may still be on its way. */
  readonly opening: Promise<Result<OpenedGit>>;
}

/** One Issue as `--json` shows it. */
interface IssueStatusJson {
  readonly id: IssueId;
  readonly title: string;
  readonly state: string;
  readonly phase?: string;
  readonly attempts: number;
  readonly wave: number;
  readonly dependsOn: readonly string[];
  readonly waitsFor?: IssueId;
  readonly branch?: string;
  /** What its calls of models took so far; absent: none was made. */
  readonly spending?: Spending;
  /** What its budgets of money and tokens stand at since a person answered last; only those that are set. */
  readonly budgets?: readonly BudgetStanding[];
  readonly question?: string;
  readonly worktree?: string;
}

/** One Spec as `--json` shows it. */
interface SpecStatusJson {
  readonly spec: SpecSlug;
  readonly title: string;
  readonly state: SpecState;
  readonly base: string | null;
  readonly tip: Oid | null;
  readonly running: { readonly pid: number; readonly host: string; readonly stopping?: StoppingJson } | null;
  /** What a person laid down that keeps it from running. */
  readonly stopFile?: StopFileJson;
  /** What a giro that was killed left running. */
  readonly left?: readonly LeftProcess[];
  /** What the calls for it and for its Issues took so far. */
  readonly spending: Spending;
  /** What its budgets of money and tokens stand at since a person answered last; only those that are set. */
  readonly budgets?: readonly BudgetStanding[];
  /** What the Spec as a whole asks. */
  readonly question?: string;
  readonly issues: readonly IssueStatusJson[];
}

/** Runs the command. */
export async function status(options: StatusOptions, ports: StatusPorts): Promise<ExitCode> {
  const { terminal } = ports;
  const opened = await ports.opening;
  if (!opened.ok) return refuse(opened.failure);
  const git = opened.value;
  try {
    const target = await readTarget(git, options);
    if (!target.ok) return refuse(target.failure);
    return target.value.kind === 'backlog'
      ? await showAll(git, options, terminal)
      : await showOne(git, { ...options, ...target.value }, terminal);
  } finally {
    await git.close();
  }
}

function refuse(failure: Failure): ExitCode {
  process.stderr.write(`${renderFailure(failure)}\n`);
  return exitCodes.error;
}

async function readTarget(git: OpenedGit, options: StatusOptions): Promise<Result<Target, Failure>> {
  if (options.target === null) return ok({ kind: 'backlog' });
  return parseTarget(options.target, { cwd: await realpath(options.folder), top: git.user.topLevel ?? options.folder });
}

/** All Specs; one that cannot be read does not hide the others. */
async function showAll(git: OpenedGit, options: StatusOptions, terminal: Terminal): Promise<ExitCode> {
  const top = git.user.topLevel;
  const specs: SpecStatusJson[] = [];
  const failures: Failure[] = [];
  const leftOf = leftRunning(git.commonDir);
  for (const slug of await knownSpecs(git, top)) {
    const read = await readSpec(git, slug, { top, terminal, leftOf });
    if (read.ok) specs.push(read.value);
    else failures.push(read.failure);
  }
  const stop = await stopFileOf(git.commonDir, null);
  if (options.json) write(terminal, `${JSON.stringify({ ...stop, specs })}\n`);
  else if (specs.length > 0 || failures.length === 0)
    write(terminal, [overview(specs), ...stopLines(stop).map((line) => `${line}\n`)].join(''));
  failures.forEach(refuse);
  return failures.length > 0 ? exitCodes.error : exitCodes.proof;
}

async function showOne(
  git: OpenedGit,
  wanted: Pick<StatusOptions, 'json'> & Exclude<Target, { kind: 'backlog' }>,
  terminal: Terminal,
): Promise<ExitCode> {
  const place = { top: git.user.topLevel, terminal, leftOf: leftRunning(git.commonDir) };
  const read = await readSpec(git, wanted.spec, place);
  if (!read.ok) return refuse(read.failure);
  const spec = read.value;
  if (wanted.kind === 'spec') {
    const packet = await packetFor(git, spec, null);
    if (wanted.json) write(terminal, `${JSON.stringify(packet === null ? spec : { ...spec, packet })}\n`);
    else write(terminal, packet === null ? specText(spec) : `${specText(spec)}\n${packetText(packet)}\n`);
    return exitCodes.proof;
  }
  const ids = spec.issues.map((issue) => issue.id);
  const id = findIssue(ids, wanted.issue);
  const issue = spec.issues.find((one) => one.id === id);
  if (issue === undefined) {
    const message = `the Spec ${spec.spec} has no Issue ${JSON.stringify(wanted.issue)}`;
    return refuse({ kind: 'usage', message, hint: `known: ${someOf(ids)}` });
  }
  const packet = await packetFor(git, spec, issue);
  if (wanted.json) write(terminal, `${JSON.stringify(packet === null ? spec : { ...spec, packet })}\n`);
  else write(terminal, packet === null ? await issueText(git, spec, issue) : askingText(spec, issue, packet));
  return exitCodes.proof;
}

async function knownSpecs(git: OpenedGit, top: string | null): Promise<readonly SpecSlug[]> {
  const branches = [...(await git.listRefs('refs/heads/giro/')).keys()].map((ref) =>
    ref.slice('refs/heads/giro/'.length),
  );
  const folders: string[] = [];
  for (const entry of top === null ? [] : await listFolder(join(top, specsFolder))) {
    const isSpec = top !== null && (await kindOf(join(top, specsFolder, entry.name, 'SPEC.md'))) === 'file';
    if (entry.kind === 'folder' && isSpec) folders.push(entry.name);
  }
  const names = new Set([...branches, ...folders]);
  return [...names].sort().flatMap((name) => parseSpecSlug(name) ?? []);
}

/** Whose checkout and environment a status is read with. */
interface Place {
  readonly top: string | null;
  readonly terminal: Terminal;
  readonly leftOf: ReturnType<typeof leftRunning>;
}

async function readSpec(git: OpenedGit, slug: SpecSlug, place: Place): Promise<Result<SpecStatusJson, Failure>> {
  const { top } = place;
  const tip = await git.readRef(integrationRef(slug));
  const parsed = tip === null ? await parseCheckout(slug, top) : await readSpecAt(git, tip, slug);
  if (!parsed.ok) return parsed;
  const { spec } = parsed.value;
  const cycles = checkGraph(spec.issues);
  if (cycles.length > 0)
    return failed({
      kind: 'usage',
      message: `the dependencies of ${slug} are not valid`,
      hint: `see: giro implement ${slug} --dry-run`,
    });
  const graph = buildGraph(spec.issues);
  const branches = await readBranches(git, slug);
  const standings = await readStandings(git, {
    spec,
    branches: tip === null ? new Map() : branches,
    wave: (id) => graph.wave(id),
  });
  const facts = standings.map((standing) => standing.facts);
  const worktrees = await worktreesOf(git, slug);
  const entries = await specEntries(git, slug, tip);
  const budgets = await standingsNow(
    place,
    new Map([[null, entries] as const, ...standings.map((one) => [one.facts.id, one.history] as const)]),
  );
  return ok({
    spec: slug,
    title: spec.title,
    state: spec.state,
    base: tip === null ? null : await findBase(git, tip),
    tip,
    ...withLeft(await runningOf(git.commonDir, slug), () => place.leftOf(slug)),
    ...toldBy(entries, spec.state, facts),
    ...setOnly(budgets.get(null)),
    issues: issuesJson({ spec, facts, branches, worktrees, budgets, tip, head: git.user.head }),
  });
}

/** What SPEC.md tells: what the newest packet asks, as long as nobody answered, and what was spent with that of the Issues. */
function toldBy(
  entries: readonly HistoryEntry[],
  state: SpecState,
  facts: readonly IssueFacts[],
): Pick<SpecStatusJson, 'question' | 'spending'> {
  const ofIssues = facts.reduce((sum, issue) => addSpending(sum, issue.spending ?? noSpending), noSpending);
  const spending = addSpending(ofIssues, spendingOf(entries));
  const question = state === 'needs-human' ? packetQuestion(sinceAnswer(entries)) : '';
  return { spending, ...(question === '' ? {} : { question }) };
}

async function specEntries(git: OpenedGit, slug: SpecSlug, tip: Oid | null): Promise<readonly HistoryEntry[]> {
  const text = tip === null ? null : await readIssueText(git, tip, `${specsFolder}/${slug}/SPEC.md`);
  return readHistory(text === null ? '' : historyOf(text));
}

function setOnly(budgets: readonly BudgetStanding[] = []): Pick<SpecStatusJson, 'budgets'> {
  return budgets.length === 0 ? {} : { budgets };
}

async function parseCheckout(
  slug: SpecSlug,
  top: string | null,
): Promise<
  Result<
    { readonly spec: Spec },
    { readonly kind: 'diagnostics'; readonly diagnostics: readonly Diagnostic[] } | Failure
  >
> {
  const files = top === null ? null : await readCheckout(top, slug);
  if (files === null)
    return failed({
      kind: 'usage',
      message: `there is no Spec ${JSON.stringify(slug)}`,
      hint: `write ${specsFolder}/${slug}/SPEC.md`,
    });
  return parseSpecFolder({ slug, files });
}

/** Where the worktrees of a Spec's Issues lie, by Issue. */
async function worktreesOf(git: OpenedGit, slug: SpecSlug): Promise<ReadonlyMap<string, string>> {
  const pattern = new RegExp(`^giro ${slug} (\\S+)$`);
  return new Map(
    (await git.listWorktrees()).flatMap((worktree): [string, string][] => {
      const issue = pattern.exec(worktree.locked?.trim() ?? '')?.[1];
      return issue === undefined ? [] : [[issue, worktree.folder]];
    }),
  );
}

function issuesJson(parts: {
  readonly spec: Spec;
  readonly facts: readonly IssueFacts[];
  readonly branches: IssueBranches;
  readonly worktrees: ReadonlyMap<string, string>;
  readonly budgets: Standings;
  readonly tip: Oid | null;
  readonly head: Oid;
}): readonly IssueStatusJson[] {
  const state = folded(parts);
  return parts.facts.map((fact) => {
    const waiting =
      fact.state === 'ready' || fact.state === 'in-progress' ? rootCause(state.issues, fact.id) : undefined;
    const branch =
      parts.branches.has(fact.id) && parts.tip !== null ? branchName(issueRef(parts.spec.slug, fact.id)) : undefined;
    const worktree = fact.state === 'done' ? undefined : parts.worktrees.get(fact.id);
    return {
      id: fact.id,
      title: fact.title,
      state: fact.state,
      ...(fact.phase === undefined ? {} : { phase: fact.phase }),
      attempts: fact.attempts,
      wave: fact.wave,
      dependsOn: fact.dependsOn,
      ...(waiting === undefined ? {} : { waitsFor: waiting.on }),
      ...(branch === undefined ? {} : { branch }),
      ...(fact.spending === undefined ? {} : { spending: fact.spending, ...setOnly(parts.budgets.get(fact.id)) }),
      ...(fact.question === undefined || fact.question === '' ? {} : { question: fact.question }),
      ...(worktree === undefined ? {} : { worktree }),
    };
  });
}

/** The state that the engine itself would start from: one reducer for every view. */
function folded(parts: {
  readonly spec: Spec;
  readonly facts: readonly IssueFacts[];
  readonly tip: Oid | null;
  readonly head: Oid;
}): RunState {
  // Before a first run there is no tip, and nothing here asks for one.
  const tip = parts.tip ?? parts.head;
  return reduce(emptyState, {
    v: 1,
    at: '',
    run: '',
    type: 'run.recovered',
    spec: parts.spec.slug,
    tip,
    issues: parts.facts,
  });
}

function overview(specs: readonly SpecStatusJson[]): string {
  if (specs.length === 0) return 'no Specs yet: write one with giro init\n';
  const width = Math.max(...specs.map((spec) => spec.spec.length));
  const lines = specs.map((spec) => {
    const done = spec.issues.filter((issue) => issue.state === 'done').length;
    const asking = spec.issues.filter((issue) => issue.state === 'needs-human').length;
    const left = spec.left === undefined ? '' : `, ${String(spec.left.length)} left running`;
    const asks = asking > 0 ? `, ${String(asking)} need a human` : spec.question === undefined ? '' : ', asks';
    return `${spec.spec.padEnd(width)}  ${spec.state.padEnd(11)}  ${String(done)}/${String(spec.issues.length)} done${asks}${left}  ${printable(spec.title)}`;
  });
  return `${lines.join('\n')}\n`;
}

const symbols: Readonly<Record<string, string>> = {
  done: '✔',
  'needs-human': '!',
  wontfix: '-',
  ready: '·',
  'in-progress': '▶',
};

function specText(spec: SpecStatusJson): string {
  const table = tableOf(spec);
  const lines = [
    `${spec.spec}: ${printable(spec.title)}`,
    `state ${spec.state}${spec.tip === null ? ', never run' : ` · giro/${spec.spec} at ${spec.tip.slice(0, 7)}${spec.base === null ? '' : ` · base ${spec.base.slice(0, 7)}`}`}`,
    spec.running === null
      ? 'nothing is running on it'
      : `running: process ${String(spec.running.pid)} on ${printable(spec.running.host)}`,
    ...stopLines(spec),
    ...leftLines(spec.spec, spec.left),
    ...(spec.spending.calls === 0 ? [] : [`spent ${spentText(spec.spending, spec.budgets)}`]),
    ...(spec.question === undefined ? [] : [`asks: ${printable(spec.question)}`]),
    '',
    ...spec.issues.flatMap((issue) => issueLines(issue, table)),
    ...(spec.issues.length === 0 ? ['no Issues yet: they are planned first, or write them yourself'] : []),
    '',
    ...nextLines(spec),
  ];
  return `${lines.join('\n')}\n`;
}

function spentText(sum: Spending, budgets: readonly BudgetStanding[] = []): string {
  return isUnknown(sum)
    ? [formatSpending(sum), formatSpent({ sum, budgets })].filter((part) => part !== '').join(', ')
    : formatSpent({ sum, budgets });
}

/** What all rows share. */
interface Table {
  readonly width: number;
  readonly asking: ReadonlySet<IssueId>;
}

function tableOf(spec: SpecStatusJson): Table {
  const asking = spec.issues.filter((issue) => issue.state === 'needs-human').map((issue) => issue.id);
  return { width: Math.max(...spec.issues.map((issue) => issue.id.length)), asking: new Set(asking) };
}

function issueLines(issue: IssueStatusJson, { width, asking }: Table): readonly string[] {
  const phase = issue.phase === undefined ? '' : ` (${issue.phase})`;
  const attempts =
    issue.attempts === 0 ? '' : ` · ${String(issue.attempts)} ${issue.attempts === 1 ? 'attempt' : 'attempts'}`;
  // Where nothing at all is known, the line of the Spec says so once.
  const sum = issue.spending === undefined ? '' : formatSpent({ sum: issue.spending, budgets: issue.budgets ?? [] });
  const spent = sum === '' ? '' : ` · ${sum}`;
  const root = issue.waitsFor;
  const waits = root === undefined ? '' : ` · waits for ${root}${asking.has(root) ? ', which needs a human' : ''}`;
  return [
    `${symbols[issue.state] ?? ' '} ${issue.id.padEnd(width)}  wave ${String(issue.wave)}  ${`${issue.state}${phase}`.padEnd(12)}${attempts}${spent}${waits}  ${printable(issue.title)}`,
    ...(issue.question === undefined ? [] : [`    asks: ${printable(issue.question)}`]),
    ...(issue.worktree === undefined || issue.state === 'ready' ? [] : [`    worktree: ${printable(issue.worktree)}`]),
  ];
}

function nextLines(spec: SpecStatusJson): readonly string[] {
  if (spec.state === 'done')
    return [`take it: giro implement ${spec.spec} checks the proof and prints the commands, tried`];
  const asking = spec.issues.filter((issue) => issue.state === 'needs-human').map((issue) => issue.id);
  const why =
    asking.length === 0
      ? []
      : [`asks for you: ${asking.join(', ')} (details: giro status ${spec.spec}/${asking[0] ?? ''})`];
  return spec.running === null && spec.stopFile === undefined ? [...why, `next: giro implement ${spec.spec}`] : why;
}

async function packetFor(git: OpenedGit, spec: SpecStatusJson, issue: IssueStatusJson | null): Promise<Packet | null> {
  const asks = (issue ?? spec).state === 'needs-human';
  if (!asks || spec.tip === null) return null;
  const path = issue === null ? null : `${specsFolder}/${spec.spec}/issues/${issue.id}.md`;
  const of = issue === null || path === null ? null : { id: issue.id, path };
  return packetOf(git, { tip: spec.tip, spec: { slug: spec.spec }, issue: of });
}

/** One Issue that asks: what a person needs to answer it, and where the rest is. */
function askingText(spec: SpecStatusJson, issue: IssueStatusJson, packet: Packet): string {
  const story = `git show ${issue.branch ?? `giro/${spec.spec}`}:${specsFolder}/${spec.spec}/issues/${issue.id}.md`;
  const rows = issueLines(issue, tableOf(spec)).filter((line) => !line.startsWith('    asks: '));
  const lines = [...rows, '', packetText(packet), '', `the whole story: ${story}`];
  return `${lines.join('\n')}\n`;
}

/** One Issue with its whole History. */
async function issueText(git: OpenedGit, spec: SpecStatusJson, issue: IssueStatusJson): Promise<string> {
  const history = await newestHistory(git, spec, issue);
  const shown = history === '' ? 'no attempt yet' : history.trimEnd();
  return `${issueLines(issue, tableOf(spec)).join('\n')}\n\n${shown.split('\n').map(printable).join('\n')}\n`;
}

/** An Issue in progress tells its story on its own branch; one at rest on the integration branch, or nowhere yet. */
async function newestHistory(git: OpenedGit, spec: SpecStatusJson, issue: IssueStatusJson): Promise<string> {
  const path = `${specsFolder}/${spec.spec}/issues/${issue.id}.md`;
  const text = spec.tip === null ? null : await readIssueText(git, spec.tip, path);
  const history = text === null ? '' : historyOf(text);
  const open = issue.state === 'in-progress' || issue.state === 'needs-human';
  const branch = issue.branch === undefined || !open ? null : await git.readRef(`refs/heads/${issue.branch}`);
  const record = branch === null ? null : (await newestRecord(git, branch)).record;
  const own = record === null ? null : await readIssueText(git, record, path);
  if (own === null) return history;
  const mine = historyOf(own);
  return readHistory(mine).length > readHistory(history).length ? mine : history;
}
