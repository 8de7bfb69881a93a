/** Checks a drafted plan as every later run will: the files as they are read back, and the graph they form. Pure. */
import { parseSpecFolder } from '../config/issue-file.js';
import { plannedIssueText } from '../config/planned-issue.js';
import type { PlannedText } from '../drivers/planner.js';
import type { Diagnostic } from '../failure.js';
import type { Finding, SpecSlug } from '../issue.js';
import { draftPlan, type Draft, type PlanGround, type PlannedIssue } from '../loop/plan-draft.js';
import { checkGraph, type GraphProblem } from '../scheduler/graph.js';
import { plannedPath } from '../store/plan-commit.js';
import type { SpecFile } from '../store/read.js';

/** Turns a planner's texts into Issues that can be run, or into every reason why not. */
export function checkPlan(
  texts: readonly PlannedText[],
  ground: Omit<PlanGround, 'issues'> & { readonly spec: SpecSlug; readonly files: readonly SpecFile[] },
): Draft {
  const { spec, files } = ground;
  const before = parseSpecFolder({ slug: spec, files });
  if (!before.ok) return rejected(before.failure.diagnostics.map(findingOf));
  const { issues } = before.value.spec;
  const draft = draftPlan(texts, { ...ground, issues: issues.map((issue) => issue.id) });
  if (draft.kind === 'rejected') return draft;
  const added = draft.issues.map((issue) => ({
    path: plannedPath(spec, issue.id),
    bytes: Buffer.from(plannedIssueText(issue)),
  }));
  // Cycles first: they are about the plan, and the files of one are each in order.
  const states = [...issues, ...draft.issues.map((issue) => ({ ...issue, state: 'ready' as const }))];
  const problems = checkGraph(states).map((problem) => ({ message: graphMessage(problem) }));
  if (problems.length > 0) return rejected(problems);
  const after = parseSpecFolder({ slug: spec, files: [...files, ...added] });
  if (!after.ok) return rejected(after.failure.diagnostics.map(findingOf));
  const changed = draft.issues.filter((issue) => {
    const read = after.value.spec.issues.find((one) => one.id === issue.id);
    return read === undefined || !isSame(read, issue);
  });
  if (changed.length === 0) return draft;
  return rejected(changed.map(({ id }) => ({ message: `the text of ${id} cannot be written as an Issue file` })));
}

function rejected(findings: readonly Finding[]): Draft {
  return { kind: 'rejected', findings };
}

/** What is read back is what was planned, and nothing more. */
function isSame(
  read: Pick<PlannedIssue, 'dependsOn' | 'touches' | 'resources'> & {
    readonly history: string;
    readonly state: string;
  },
  planned: PlannedIssue,
): boolean {
  const shape = ({ dependsOn, touches, resources }: Pick<PlannedIssue, 'dependsOn' | 'touches' | 'resources'>) =>
    JSON.stringify([dependsOn, touches, resources]);
  return read.history === '' && read.state === 'ready' && shape(read) === shape(planned);
}

function findingOf({ file, line, message, hint }: Diagnostic): Finding {
  const text = hint === undefined ? message : `${message}; ${hint.split('\n')[0] ?? ''}`;
  return { message: text, file, ...(line === undefined ? {} : { line }) };
}

function graphMessage(problem: GraphProblem): string {
  switch (problem.kind) {
    case 'cycle':
      return `the dependencies form a cycle: ${problem.path.join(' -> ')}`;
    case 'self':
      return `${problem.issue} depends on itself`;
    case 'unknown':
      return `${problem.issue} depends on ${JSON.stringify(problem.id)}, which does not exist`;
    case 'wontfix':
      return `${problem.issue} depends on ${problem.id}, which is wontfix`;
    case 'duplicate-number':
      return `these Issues have the same number: ${problem.issues.join(', ')}`;
  }
}
