/** The commits of planning on `giro/<spec>`: the plan recorded, closed, and written with its Issues. */
import { plannedIssueText, type PlannedFile } from '../config/planned-issue.js';
import { historyOf, replaceHistory } from '../config/splice.js';
import type { IssueId, Oid } from '../issue.js';
import { specsFolder } from '../spec.js';
import { docsCommit, type BranchFacts } from './integration.js';
import { readIssueText } from './read.js';
import { closePlan, openPlan, type PlanClosing } from './spec-history.js';
import { codeTree } from './tree.js';

/** An Issue to write. */
export interface PlannedEntry extends PlannedFile {
  readonly id: IssueId;
}

/** Records that a planner is about to start (L5). */
export async function planOpenedCommit(
  facts: BranchFacts,
  request: { readonly tip: Oid; readonly driver: string; readonly round: number },
): Promise<Oid> {
  const { tip, driver, round } = request;
  return planningCommit(facts, {
    tip,
    checkpoint: 'planning',
    subject: round === 0 ? 'planning' : `planning the gaps of round ${String(round)}`,
    history: (history) => openPlan(history, { at: facts.iso(), driver, base: tip, round }),
    files: new Map(),
  });
}

/** Records that a plan came to nothing. */
export async function planClosedCommit(
  facts: BranchFacts,
  request: { readonly tip: Oid; readonly closing: Omit<PlanClosing, 'planned'> },
): Promise<Oid> {
  const { tip, closing } = request;
  const subject = closing.questions.length > 0 ? 'the planner has questions' : `no plan (${closing.verdict})`;
  return planningCommit(facts, {
    tip,
    checkpoint: 'planning',
    subject,
    history: (history) => closePlan(history, { ...closing, planned: [] }),
    files: new Map(),
  });
}

/** Writes the Issues of a plan, and that it is taken, at once. */
export async function planCommit(
  facts: BranchFacts,
  request: { readonly tip: Oid; readonly issues: readonly PlannedEntry[]; readonly spent: PlanClosing['spent'] },
): Promise<Oid> {
  const { tip, issues, spent } = request;
  const kind = issues[0]?.gap === null ? 'Issue' : 'gap Issue';
  return planningCommit(facts, {
    tip,
    checkpoint: 'plan',
    subject: `plan: ${String(issues.length)} ${kind}${issues.length === 1 ? '' : 's'}`,
    history: (history) => closePlan(history, { verdict: 'pass', spent, findings: [], questions: [], planned: issues }),
    files: new Map(issues.map((issue) => [plannedPath(facts.spec, issue.id), plannedIssueText(issue)])),
  });
}

/** Gives the path of an Issue's file. */
export function plannedPath(spec: string, id: IssueId): string {
  return `${specsFolder}/${spec}/issues/${id}.md`;
}

async function planningCommit(
  facts: BranchFacts,
  change: {
    readonly tip: Oid;
    readonly checkpoint: 'planning' | 'plan';
    readonly subject: string;
    readonly history: (history: string) => string;
    readonly files: ReadonlyMap<string, string>;
  },
): Promise<Oid> {
  const { git, spec } = facts;
  const { tip, checkpoint } = change;
  const path = `${specsFolder}/${spec}/SPEC.md`;
  const text = (await readIssueText(git, tip, path)) ?? '';
  return docsCommit(facts, {
    tip,
    checkpoint,
    subject: `${spec}: ${change.subject}`,
    files: new Map([...change.files, [path, replaceHistory(text, change.history(historyOf(text)))]]),
    code: await codeTree(git, (await git.readCommit(tip)).tree),
  });
}
