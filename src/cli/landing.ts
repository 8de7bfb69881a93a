/** What moves `giro/<spec>`: landings, packets, and the Spec's own end. Each is one commit, made in the lane. */
import { createHash } from 'node:crypto';
import type { Emit } from '../event.js';
import { definitionHash, describeGate } from '../gates/definition.js';
import type { Verdict, Verifier } from '../gates/gate.js';
import { dueGates } from '../gates/gate.js';
import type { Oid } from '../issue.js';
import { onlyBroken, redLogs } from '../loop/decide.js';
import { gateNotes, shortHash } from '../loop/notes.js';
import type { LaneAnswer } from '../loop/ports.js';
import { specGates, type AlongEnd, type SpecFinish, type SpecWritten } from '../loop/spec-loop.js';
import { printable } from '../platform/text.js';
import type { Policy } from '../policy.js';
import { appendEscalation, appendValidation } from '../store/history-entries.js';
import {
  escalationCommit,
  landedCommit,
  specStateCommit,
  stackedCommit,
  type BranchFacts,
  type Along,
} from '../store/integration.js';
import type { Journal } from '../store/journal.js';
import { codeTree, joinTree, specsTree } from '../store/tree.js';
import { trailer } from '../store/trailers.js';
import type { Git } from '../worktree/git-types.js';
import type { Lane, Mergeable, Recording } from '../worktree/lane.js';
import { saveCommit } from '../worktree/salvage.js';

/** What landings stand on. */
export interface LandingPorts {
  readonly facts: BranchFacts;
  readonly lane: Lane;
  readonly policy: Policy;
  readonly verifier: Verifier;
  readonly signal: AbortSignal;
  readonly emit: Emit;
  /** Says whether a person answered on the branch what this run has not taken up yet. */
  readonly hasAnswers: (tip: Oid) => Promise<boolean>;
}

/** Takes one finished Issue through the lane. */
export async function land(ports: LandingPorts, journal: Journal): Promise<LaneAnswer> {
  const { emit, facts, lane, policy, signal, verifier } = ports;
  const issue = journal.id;
  const { accepted } = journal.story;
  const landing = await lane.land<Verdict>({
    mine: () => journal.standIn(),
    onCandidate: (tip, tree) => {
      emit({ type: 'candidate.made', issue, tip, tree });
    },
    verify: (code, tip) =>
      verifier.verify({
        scope: 'integration',
        issue,
        gates: dueGates(policy.gates, 'integration', journal.issue.gates),
        codeTree: code,
        attempt: journal.attempt,
        subject: journal.commit === null ? null : { commit: journal.commit, base: tip },
        accepted,
        signal,
      }),
    commit: (tip, code, verdict) =>
      landedCommit(facts, {
        tip,
        code,
        journal,
        gates: gateNotes(verdict, accepted),
        waived: verdict.waived,
      }),
    onHeld: (message) => {
      emit({ type: 'lane.held', issue, message });
    },
  });
  switch (landing.kind) {
    case 'landed':
      emit({ type: 'issue.integrated', issue, commit: landing.commit, attempts: journal.attempt });
      return landing;
    case 'conflict': {
      emit({ type: 'candidate.conflicted', issue, tip: landing.tip, files: landing.files });
      const findings = landing.files.map((file) => ({ file, message: 'conflicts with what has landed meanwhile' }));
      return { kind: 'rejected', tip: landing.tip, gates: [], findings, broken: false };
    }
    case 'red': {
      const { findings } = landing.verdict;
      // A judge was not called: no budget has room for it.
      if (landing.verdict.gates.some((gate) => gate.cause === 'cancelled')) return { kind: 'stopped' };
      emit({ type: 'candidate.rejected', issue, tip: landing.tip, findings });
      const broken = onlyBroken(landing.verdict, accepted) && !ranBefore(policy, journal, landing.verdict);
      const [gates, logs] = [gateNotes(landing.verdict, accepted), redLogs(landing.verdict)];
      return { kind: 'rejected', tip: landing.tip, gates, findings, broken, logs };
    }
    case 'held':
      emit({ type: 'lane.held', issue, message: landing.message });
      return landing;
    case 'stopped':
      return landing;
  }
}

/** A gate that passed on the Issue's own code has all it needs on this machine: that it cannot run now is the merge's doing. */
function ranBefore(policy: Policy, journal: Journal, verdict: Verdict): boolean {
  const own = new Set(dueGates(policy.gates, 'issue', journal.issue.gates).map((gate) => gate.name));
  return verdict.gates.some((gate) => gate.cause === 'cannot-run-here' && own.has(gate.gate));
}

/** Takes the proven work of another Spec through the lane; `null`: it is on the branch. */
export async function landAlong(ports: LandingPorts, along: Along): Promise<AlongEnd | null> {
  const { facts, lane, policy, signal, verifier } = ports;
  const { git } = facts;
  const landing = await lane.land<Verdict>({
    mine: () => standInOf(git, lane.tip, along.tip),
    onCandidate: () => undefined,
    verify: (code, tip) =>
      verifier.verify({
        ...{ scope: 'integration', issue: null, attempt: null, codeTree: code, signal },
        gates: dueGates(policy.gates, 'integration', []),
        subject: { commit: along.tip, base: tip },
      }),
    commit: (tip, code, verdict) => stackedCommit(facts, { tip, code, along, gates: gateNotes(verdict) }),
    onHeld: (message) => {
      ports.emit({ type: 'run.notice', level: 'warning', message });
    },
  });
  switch (landing.kind) {
    case 'landed':
      return null;
    case 'held':
    case 'stopped':
      return landing;
    case 'conflict': {
      const findings = landing.files.map((file) => ({ file, message: `conflicts with ${along.name}` }));
      const why = `${along.name} was to be taken along, and conflicts with giro/${facts.spec}`;
      return {
        kind: 'asks',
        asks: { cause: along.proved ? 'stack-conflict' : 'base-conflict', why, findings, questions: [] },
      };
    }
    case 'red': {
      const why = `${along.name} merges, and is red together with the rest`;
      const cause = onlyBroken(landing.verdict) ? 'cannot-run-here' : along.proved ? 'stack-red' : 'base-red';
      return { kind: 'asks', asks: { cause, why, findings: landing.verdict.findings, questions: [] } };
    }
  }
}

/** The code of another Spec's tip, so that only code can conflict. */
async function standInOf(git: Git, tip: Oid, theirs: Oid): Promise<Mergeable> {
  const base = await git.mergeBase(tip, theirs);
  const code = await codeOf(git, theirs);
  const specs = base === null ? null : await specsTree(git, (await git.readCommit(base)).tree);
  const tree = await joinTree(git, code, specs);
  const commit = await git.writeCommit({ tree, parents: base === null ? [] : [base], message: 'stand-in\n', at: 0 });
  return { commit, base: base ?? theirs, code };
}

/** Shows an escalated Issue on the integration branch. What its own branch cannot hold any more is saved (L6). */
export async function publish(
  ports: Pick<LandingPorts, 'facts' | 'lane' | 'emit'>,
  journal: Journal,
): Promise<Recording> {
  const { facts, lane, emit } = ports;
  let saved: string | null = null;
  if (journal.lost !== null && journal.commit !== null) {
    saved = await saveCommit(facts.git, { spec: facts.spec, issue: journal.id }, journal.commit);
    const message = `${journal.id}: ${journal.lost}; nothing there was overwritten, and what giro had is saved as ${saved}`;
    emit({ type: 'run.notice', level: 'warning', message: printable(message), issue: journal.id });
  }
  return lane.record((tip) => escalationCommit(facts, { tip, journal, saved }));
}

/** Writes how the Spec ended. */
export function finishSpec(
  ports: Omit<LandingPorts, 'verifier' | 'emit' | 'signal'>,
  end: SpecFinish,
): Promise<SpecWritten> {
  const { facts, lane, policy } = ports;
  const { validated, escalation, code } = end;
  const at = facts.iso();
  const passed = validated === 'pass';
  const tell = (history: string, tip: Oid): string => {
    const definitions = definitionsOf(policy);
    const validation = { at, tip, code, gates: end.gates, waived: end.waived, definitions };
    const told = validated === null ? history : appendValidation(history, { ...validation, verdict: validated });
    return escalation === null ? told : appendEscalation(told, { at, ...escalation });
  };
  return lane.record(async (tip) => {
    // A verdict is one on a code tree: what somebody put on the branch since was not judged.
    if (validated !== null && (await codeOf(facts.git, tip)) !== code) return null;
    // An answer that nobody took up yet must not be written over by "needs a human".
    if (validated === null && (await ports.hasAnswers(tip))) return null;
    return specStateCommit(facts, {
      tip,
      state: end.state,
      checkpoint: validated === null ? 'state' : 'validated',
      subject: `${facts.spec}: ${passed ? 'validated' : end.state === 'active' ? 'validated, red' : 'needs a human'}`,
      append: (history: string) => tell(history, tip),
      ...(passed ? { trailers: { 'Giro-Validated': `${code} ${gatesDigest(policy)}` } } : {}),
    });
  });
}

async function codeOf(git: Git, commit: Oid): Promise<Oid> {
  return codeTree(git, (await git.readCommit(commit)).tree);
}

/** Tells whether a done Spec's tip still carries the proof of these gates. */
export async function proofHolds(git: Git, policy: Policy, tip: Oid): Promise<boolean> {
  const commit = await git.readCommit(tip);
  return trailer(commit.message, 'Giro-Validated') === `${await codeTree(git, commit.tree)} ${gatesDigest(policy)}`;
}

/** Every gate of giro.toml with what it demands. */
function definitionsOf(policy: Policy): NonNullable<Parameters<typeof appendValidation>[1]['definitions']> {
  return policy.gates.map((gate) => ({
    gate: gate.name,
    hash: shortHash(definitionHash(gate)),
    demand: describeGate(gate),
  }));
}

/** What a proof is bound to beside the tree: the definitions of the gates. */
function gatesDigest(policy: Policy): string {
  const gates = [...specGates(policy), ...dueGates(policy.gates, 'integration', [])];
  const definitions = gates.map((gate) => [gate.name, definitionHash(gate), gate.on]);
  return createHash('sha256').update(JSON.stringify(definitions)).digest('hex').slice(0, 16);
}
