/** Planning joined with git: what the Spec loop asks about plans and rounds, answered from SPEC.md on `giro/<spec>`. */
import type { Emit, IssueFacts } from '../event.js';
import type { IssueId, Oid } from '../issue.js';
import { issueNumber, parseIssueId, shortOid } from '../issue.js';
import type { Budgeting } from '../loop/budget.js';
import { planPrompt } from '../loop/plan-prompt.js';
import type { Parking } from '../loop/parking.js';
import {
  runPlanning,
  type PlannerCall,
  type PlannerReply,
  type PlanPorts,
  type PlanRecord,
  type PlanWritten,
} from '../loop/plan-loop.js';
import type { SpecLoopPorts } from '../loop/spec-loop.js';
import { specGates } from '../loop/spec-loop.js';
import type { Clock } from '../platform/clock.js';
import type { Policy } from '../policy.js';
import { buildGraph } from '../scheduler/graph.js';
import { specsFolder, type Spec } from '../spec.js';
import { historyOf } from '../config/splice.js';
import { readBranches } from '../store/facts.js';
import { readHistory } from '../store/history.js';
import type { BranchFacts } from '../store/integration.js';
import { planClosedCommit, planCommit, planOpenedCommit } from '../store/plan-commit.js';
import { readIssueText, readSpecAt, readSpecFiles } from '../store/read.js';
import { openGap, planStanding, redRound } from '../store/spec-history.js';
import type { Lane, Recording } from '../worktree/lane.js';
import { checkPlan } from './plan-check.js';

/** One planner at work, in its own checkout. */
export interface Planner {
  /** Name of its driver. */
  readonly driver: string;
  readonly logFile: (plan: number) => string;
  run(request: {
    readonly plan: number;
    readonly commit: Oid;
    readonly prompt: string;
    readonly timeLeftMs: number | null;
  }): Promise<PlannerReply>;
}

/** What planning stands on. */
export interface PlanningPorts {
  readonly facts: BranchFacts;
  readonly lane: Lane;
  readonly policy: Policy;
  readonly planner: Planner;
  readonly budget: Pick<Budgeting, 'ask'>;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly jitter: () => number;
  readonly parking: Parking;
  readonly noMore: AbortSignal;
  readonly inSlot: PlanPorts['inSlot'];
  /** Tells the run that there are more Issues. */
  readonly onPlanned: (issues: readonly IssueId[]) => void;
}

/** Gives what the Spec loop needs to plan. */
export function planningOf(ports: PlanningPorts): Pick<SpecLoopPorts, 'plan' | 'openGap' | 'round'> {
  const { lane, facts } = ports;
  const own = planPorts(ports);
  return {
    plan: (request) => runPlanning(own, request),
    openGap: async (code) => {
      const gap = openGap(readHistory(await specHistory(ports)));
      // A verdict is one on a code tree: what somebody put on the branch since was not judged.
      return gap === null || gap.tree !== shortOid(code) ? null : { round: gap.round, gaps: gap.text };
    },
    round: async (red) => redRound(await specHistory({ facts, lane }), { ...red, tip: lane.tip }),
  };
}

function planPorts(ports: PlanningPorts): PlanPorts {
  const { facts, lane, policy, planner } = ports;
  const { git, spec } = facts;
  return {
    spec,
    budget: policy.budget,
    spending: ports.budget,
    driver: planner.driver,
    record: recordOf(ports),
    call: (call) => callPlanner(ports, call),
    draft: async (texts, round) =>
      checkPlan(texts, {
        spec,
        files: await readSpecFiles(git, lane.tip, spec),
        // Branches of Issues that are no more keep their numbers.
        taken: [...(await readBranches(git, spec)).keys()].flatMap((name) => {
          const id = parseIssueId(name);
          return id === undefined ? [] : [issueNumber(id)];
        }),
        gap: round === 0 ? null : round,
      }),
    logFile: planner.logFile,
    clock: ports.clock,
    emit: ports.emit,
    jitter: ports.jitter,
    parking: ports.parking,
    noMore: ports.noMore,
    inSlot: ports.inSlot,
  };
}

function recordOf(ports: PlanningPorts): PlanRecord {
  const { facts, lane } = ports;
  return {
    standing: async () => planStanding(readHistory(await specHistory(ports))),
    open: async ({ driver, round }) => {
      const recording = await lane.record((tip) => planOpenedCommit(facts, { tip, driver, round }));
      return written(recording, async () => ({ plan: planStanding(readHistory(await specHistory(ports))).last }));
    },
    close: async (closing) =>
      written(await lane.record((tip) => planClosedCommit(facts, { tip, closing })), () => Promise.resolve({})),
    write: async ({ spent, issues }) => {
      const recording = await lane.record((tip) => planCommit(facts, { tip, issues, spent }));
      return written(recording, async (tip) => {
        const ids = new Set<IssueId>(issues.map((issue) => issue.id));
        ports.onPlanned([...ids]);
        return { facts: plannedFacts(await specAt(ports, tip), ids) };
      });
    },
  };
}

async function written<T extends object>(
  recording: Recording,
  more: (tip: Oid) => Promise<T>,
): Promise<PlanWritten<T>> {
  if (recording.kind !== 'recorded') return { kind: 'held', message: recording.message };
  return { kind: 'recorded', tip: recording.tip, ...(await more(recording.tip)) };
}

function plannedFacts(spec: Spec, planned: ReadonlySet<IssueId>): readonly IssueFacts[] {
  const graph = buildGraph(spec.issues);
  return spec.issues
    .filter((issue) => planned.has(issue.id))
    .map(({ id, title, state, dependsOn }) => ({ id, title, state, attempts: 0, wave: graph.wave(id), dependsOn }));
}

async function callPlanner(ports: PlanningPorts, call: PlannerCall): Promise<PlannerReply> {
  const { plan, commit, request, standing, timeLeftMs } = call;
  const spec = await specAt(ports, commit);
  const prompt = planPrompt({
    spec,
    issues: spec.issues,
    gates: [...new Set([...specGates(ports.policy), ...ports.policy.gates])],
    gaps: request.gaps,
    answers: standing.answers,
    rejected: standing.rejected,
  });
  return ports.planner.run({ plan, commit, prompt, timeLeftMs });
}

/** The files were checked when they were written; that they cannot be read now is a bug. */
async function specAt({ facts }: Pick<PlanningPorts, 'facts'>, commit: Oid): Promise<Spec> {
  const read = await readSpecAt(facts.git, commit, facts.spec);
  if (!read.ok) throw new Error(`${facts.spec} cannot be read: ${read.failure.diagnostics[0]?.message ?? ''}`);
  return read.value.spec;
}

async function specHistory({ facts, lane }: Pick<PlanningPorts, 'facts' | 'lane'>): Promise<string> {
  const text = await readIssueText(facts.git, lane.tip, `${specsFolder}/${facts.spec}/SPEC.md`);
  return text === null ? '' : historyOf(text);
}
