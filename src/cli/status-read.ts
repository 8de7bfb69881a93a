/** What `giro status` shows of one Spec, read from refs and blobs. */
import { parseSpecFolder } from '../config/issue-file.js';
import { historyOf } from '../config/splice.js';
import type { IssueFacts, LeaseHolder } from '../event.js';
import { failed, ok, type Diagnostic, type Failure, type Result } from '../failure.js';
import type { IssueId, Oid, SpecSlug } from '../issue.js';
import { buildGraph, checkGraph } from '../scheduler/graph.js';
import { specsFolder, type Spec, type SpecState } from '../spec.js';
import { reduce, rootCause, emptyState, type RunState } from '../state.js';
import { branchNames, readStandings, readWorkedOn } from '../store/facts.js';
import { packetQuestion, readHistory, sinceAnswer, type HistoryEntry } from '../store/history.js';
import { findBase } from '../store/intake.js';
import { spendingOf } from '../store/ledger.js';
import { newestRecord, readIssueText, readSpecAt } from '../store/read.js';
import { branchName, integrationRef, issueRef } from '../store/refs.js';
import { addSpending, noSpending, type BudgetStanding, type Spending } from '../usage.js';
import type { OpenedGit } from '../worktree/git-types.js';
import type { Packet } from '../packet.js';
import { packetOf } from './packet-text.js';
import { notFiles, readCheckout } from './checkout-files.js';
import type { leftRunning, LeftProcess } from './leftovers.js';
import { leaseHolders } from './status-leases.js';
import { withLeft } from './status-left.js';
import { standingsNow, type Standings } from './status-budgets.js';
import { runningOf, type StopFileJson, type StoppingJson } from './status-stop.js';
import type { Terminal } from './show.js';

/** One Issue as `--json` shows it. */
export interface IssueStatusJson {
  readonly id: IssueId;
  readonly title: string;
  readonly state: string;
  readonly phase?: string;
  readonly attempts: number;
  readonly wave: number;
  readonly dependsOn: readonly string[];
  readonly waitsFor?: IssueId;
  /** It could start, but for an Issue of another Spec that is run now. */
  readonly waitsForLease?: LeaseHolder;
  readonly branch?: string;
  /** What its calls of models took so far; absent: none was made. */
  readonly spending?: Spending;
  /** What its budgets of money and tokens stand at since a person answered last; only those that are set. */
  readonly budgets?: readonly BudgetStanding[];
  readonly question?: string;
  readonly worktree?: string;
}

/** One Spec as `--json` shows it. */
export interface SpecStatusJson {
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

/** Whose checkout and environment a status is read with. */
export interface Place {
  readonly top: string | null;
  readonly terminal: Terminal;
  readonly leftOf: ReturnType<typeof leftRunning>;
}

/** Reads one Spec: from its branch, or from the checkout before a first run. */
export async function readSpec(git: OpenedGit, slug: SpecSlug, place: Place): Promise<Result<SpecStatusJson, Failure>> {
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
  const standings = await readStandings(git, {
    spec,
    branches: tip === null ? new Map() : await readWorkedOn(git, spec),
    wave: (id) => graph.wave(id),
  });
  const facts = standings.map((standing) => standing.facts);
  const worktrees = await worktreesOf(git, slug);
  const holders = await leaseHolders(git.commonDir, spec, (of) => place.leftOf(of).length > 0);
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
    issues: issuesJson({
      spec,
      facts,
      branches: new Set(await branchNames(git, slug)),
      worktrees,
      holders,
      budgets,
      tip,
      head: git.user.head,
    }),
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
  const wrong = top === null ? [] : await notFiles(top, slug);
  return wrong.length > 0 ? failed({ kind: 'diagnostics', diagnostics: wrong }) : parseSpecFolder({ slug, files });
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
  /** Issues that have one. */
  readonly branches: ReadonlySet<string>;
  readonly worktrees: ReadonlyMap<string, string>;
  readonly holders: ReadonlyMap<IssueId, LeaseHolder>;
  readonly budgets: Standings;
  readonly tip: Oid | null;
  readonly head: Oid;
}): readonly IssueStatusJson[] {
  const state = folded(parts);
  return parts.facts.map((fact) => {
    const isOpen = fact.state === 'ready' || fact.state === 'in-progress';
    const waiting = isOpen ? rootCause(state.issues, fact.id) : undefined;
    const holder = isOpen && waiting === undefined ? parts.holders.get(fact.id) : undefined;
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
      ...(holder === undefined ? {} : { waitsForLease: holder }),
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

/** What a Spec (`issue` is null) or one of its Issues asks, with all that an answer needs; null when it asks nothing. */
export async function packetFor(
  git: OpenedGit,
  spec: SpecStatusJson,
  issue: IssueStatusJson | null,
): Promise<Packet | null> {
  const asks = (issue ?? spec).state === 'needs-human';
  if (!asks || spec.tip === null) return null;
  const path = issue === null ? null : `${specsFolder}/${spec.spec}/issues/${issue.id}.md`;
  const of = issue === null || path === null ? null : { id: issue.id, path };
  return packetOf(git, { tip: spec.tip, spec: { slug: spec.spec }, issue: of });
}

/** An Issue in progress tells its story on its own branch; one at rest on the integration branch, or nowhere yet. */
export async function newestHistory(git: OpenedGit, spec: SpecStatusJson, issue: IssueStatusJson): Promise<string> {
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
