/** The contract of the gates: what judges a tree, and the one function that decides "passed". */
import type { Emit, Ended } from '../event.js';
import type { Result } from '../failure.js';
import type { Evidence, Finding, IssueId, Oid, Waived } from '../issue.js';
import { findingId } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import type { Confinement } from '../platform/confinement.js';
import type { Environment } from '../platform/environment.js';
import type { MachineLoad } from '../platform/load.js';
import type { EvidencePolicy, GateDefinition, GateScope, RunScope } from '../policy.js';
import type { Usage } from '../usage.js';
import type { PassSubject, VerdictCache } from './cache.js';

/**
 * Why a gate is red. `failed`, `vacuous`, `flaky`, `timed-out` and `dirty` speak of the work; the others speak of what is
 * around it. `not-run`: it waits for the gates before it to be green (`after-green`).
 */
export type GateCause =
  'failed' | 'vacuous' | 'flaky' | 'timed-out' | 'cannot-run-here' | 'errored' | 'dirty' | 'cancelled' | 'not-run';

/** Who judged, of a gate that a judge decides. */
export interface JudgedBy {
  readonly driver: string;
  /** As its program reports it; `null`: unknown. */
  readonly model: string | null;
  /** SHA-256 of the prompt. */
  readonly promptHash: string;
}

/** What one gate came to on one code tree. */
export interface GateVerdict {
  readonly gate: string;
  readonly verdict: 'pass' | 'fail';
  /** Absent exactly when it passed. */
  readonly cause: GateCause | null;
  /** True: this pass was paid for before, on the same code tree. */
  readonly cached: boolean;
  /** Absent when no process ran for it. */
  readonly ended: Ended | null;
  readonly durationMs: number;
  readonly findings: readonly Finding[];
  /** The file with its whole output. */
  readonly log: string | null;
  /** SHA-256 of the whole output; `null` when it did not run here. */
  readonly logHash: string | null;
  /** Hash of what the gate demands. */
  readonly definition: string;
  /** What its run shows that was tested; `null`: nothing that is known printed anything. */
  readonly evidence: Evidence | null;
  /** What a built-in proof has shown by runs of other gates; absent: the gate ran itself. */
  readonly shown?: string;
  /** The rule of giro.toml by which a person accepts this red; `null`: none does. */
  readonly waiver: string | null;
  /** `null`: no judge decided. */
  readonly judge: JudgedBy | null;
  /** `null`: no model was called. */
  readonly usage: Usage | null;
}

/** What all due gates came to. */
export interface Verdict {
  readonly passed: boolean;
  /** One per due gate, in their order. */
  readonly gates: readonly GateVerdict[];
  /** Those of all gates that block. */
  readonly findings: readonly Finding[];
  /** Those that a person accepted, and that would block else. */
  readonly waived: readonly Waived[];
}

/** What the loops ask for. */
export interface VerifyRequest {
  readonly scope: RunScope;
  readonly issue: IssueId | null;
  /** The due ones, in order; an empty list is a bug of the caller. */
  readonly gates: readonly GateDefinition[];
  readonly codeTree: Oid;
  readonly attempt: number | null;
  /** What is under judgement as commits; `null`: there is only a tree. */
  readonly subject: Subject | null;
  /** True: a red is what is looked for, so it is neither run again nor compared with the base. */
  readonly probing?: boolean;
  /** Ids of the findings that a person accepted for this Issue or Spec; absent: none. */
  readonly accepted?: AcceptedIds;
  readonly signal: AbortSignal;
}

/** Where the tree comes from, for whoever looks at more than the tree: judges, and tests that must fail on the base. */
export interface Subject {
  /** The commit whose `docs/specs/` belongs to the tree. For a candidate it is the Issue's own. */
  readonly commit: Oid;
  /** What the tree is a change of. */
  readonly base: Oid;
}

/** Ids of findings (see `findingId`). */
export type AcceptedIds = ReadonlySet<string>;

/** Judges a code tree. */
export interface Verifier {
  verify(request: VerifyRequest): Promise<Verdict>;
}

/** What separates gates that run side by side. */
export interface GateSlot {
  readonly number: number;
  readonly portBase: number;
  /** A fresh folder for `TMPDIR`. */
  readonly temporary: string;
}

/** A clean folder that holds one code tree. */
export interface GateCheckout {
  readonly folder: string;
  readonly slot: GateSlot;
  /** Something runs in it from now on: what was seen before does not count any more. */
  enter(): void;
  /** Tracked files that are no longer as the tree has them. */
  changedFiles(): Promise<readonly string[]>;
  /** Brings the tracked files back. */
  restore(): Promise<void>;
}

/** Why there is no checkout. */
export interface SetupFailure {
  readonly kind: 'setup-failed';
  readonly message: string;
  readonly tail: string;
  readonly log: string;
}

/** Hands out a checkout of a code tree for as long as `use` runs. */
export type WithCheckout = <T>(
  codeTree: Oid,
  use: (checkout: GateCheckout) => Promise<T>,
) => Promise<Result<T, SetupFailure>>;

/** What a verifier is made with. */
export interface VerifierPorts {
  readonly withCheckout: WithCheckout;
  readonly cache: VerdictCache;
  /** Under which key a pass is remembered: everything that it depends on. */
  readonly passKey: (subject: PassSubject) => string;
  /** Reads what the output of a gate says that was tested. */
  readonly readEvidence: (output: string, isWhole: boolean) => Evidence | null;
  /** The limit of gates at once: runs what it is given when there is room, the urgent before the rest. */
  readonly slots: <T>(run: () => Promise<T>, urgent: boolean) => Promise<T>;
  readonly emit: Emit;
  readonly clock: Clock;
  /** The allow-list with the names in the gate's `env`, and `GIRO_SPEC`. What depends on gate, Issue and slot is added to it. */
  readonly environment: (slot: GateSlot, gate: GateDefinition) => Environment;
  /** Where each gate's whole output goes, one file per run of a gate. */
  readonly logFolder: string;
  readonly graceMs: number;
  /** Limits what a gate starts. */
  readonly confinement?: Confinement;
  /** Stands for the tools of this machine: a pass holds only under the same one. */
  readonly toolFingerprint: string;
  readonly evidence: Pick<EvidencePolicy, 'baseline' | 'flaky'>;
  /** What each gate came to before any work; `null`: not looked at. */
  readonly baseline: (gate: string) => GateVerdict | null;
  readonly load: () => MachineLoad;
  /** What the user's checkout has and the given one has not; for a hint only. */
  readonly lacks?: (checkout: string) => Promise<Lacking>;
}

/** Ignored files and folders that the user's checkout has and the clean one has not. */
export interface Lacking {
  readonly names: readonly string[];
  /** The command that would make them; `null`: not known. */
  readonly install: string | null;
}

/** No finding is accepted. */
export const noneAccepted: AcceptedIds = new Set();

/**
 * Decides "passed", for everyone (L4). At least one gate, and each of them green without a cause and without a finding: by a process
 * that exited with 0, or by a pass that was paid for before on the same tree; or red for nothing but what a person accepted
 * by name, in an answer or by a rule of giro.toml. Whatever is not plainly that has not passed.
 */
export function isPassed(
  verdict: { readonly gates: readonly GateVerdict[] },
  accepted: AcceptedIds = noneAccepted,
): boolean {
  return verdict.gates.length > 0 && verdict.gates.every((gate) => isAllowed(gate, accepted));
}

/** Says whether giro.toml accepts a red. Only what came to a verdict on tests can be accepted. */
function isWaivedByConfig({ verdict, cause, waiver, findings }: GateVerdict): boolean {
  return verdict === 'fail' && waiver !== null && (cause === 'failed' || cause === 'flaky') && findings.length > 0;
}

/** Decides it for one gate. */
export function isGreen(gate: GateVerdict): boolean {
  if (gate.verdict !== 'pass' || gate.cause !== null || gate.findings.length > 0) return false;
  if (gate.shown !== undefined) return gate.ended === null && !gate.cached;
  return gate.cached ? gate.ended === null : gate.ended?.kind === 'exited' && gate.ended.code === 0;
}

/** Says whether a gate does not block: it is green, or waived. */
export function isAllowed(gate: GateVerdict, accepted: AcceptedIds = noneAccepted): boolean {
  return isGreen(gate) || isWaived(gate, accepted);
}

/**
 * Says whether a red gate is red for nothing but what a person accepted. What came to no verdict cannot be accepted: nobody
 * knows what it would have found.
 */
export function isWaived(gate: GateVerdict, accepted: AcceptedIds): boolean {
  if (gate.verdict !== 'fail' || gate.cause === null || isUnjudged(gate.cause)) return false;
  if (isWaivedByConfig(gate)) return true;
  return gate.findings.length > 0 && gate.findings.every((finding) => accepted.has(findingId(finding)));
}

function isUnjudged(cause: GateCause): boolean {
  switch (cause) {
    case 'failed':
    case 'timed-out':
    case 'dirty':
    case 'vacuous':
    case 'flaky':
      return false;
    case 'cannot-run-here':
    case 'errored':
    case 'cancelled':
    case 'not-run':
      return true;
  }
}

/** Gives the ids of the findings that a person could accept: those of gates that came to a verdict. */
export function acceptableOf(verdict: { readonly gates: readonly GateVerdict[] }): AcceptedIds {
  const judged = verdict.gates.filter((gate) => gate.cause !== null && !isUnjudged(gate.cause));
  return new Set(judged.flatMap((gate) => gate.findings.map(findingId)));
}

/** Joins the verdicts of gates to the verdict of all of them. */
export function verdictOf(gates: readonly GateVerdict[], accepted: AcceptedIds = noneAccepted): Verdict {
  const [waived, findings]: [Waived[], Finding[]] = [[], []];
  for (const gate of gates) {
    for (const finding of gate.findings) {
      const waiver = waiverOf(gate, finding, accepted);
      if (waiver === null) findings.push(finding);
      else waived.push(waiver);
    }
  }
  return { passed: isPassed({ gates }, accepted), gates, findings, waived };
}

/** A finding of a gate that came to no verdict stays a reason, whatever its text. */
function waiverOf(gate: GateVerdict, finding: Finding, accepted: AcceptedIds): Waived | null {
  const { message: what } = finding;
  const id = findingId(finding);
  if (isWaivedByConfig(gate)) return { finding: id, by: 'config', what: `${what} (${gate.waiver ?? ''})` };
  const isAccepted = gate.cause !== null && !isUnjudged(gate.cause) && accepted.has(id);
  return isAccepted ? { finding: id, by: 'answer', what } : null;
}

/**
 * Selects the gates that are due in a scope: those whose `on` says so and those an Issue names. Commands come first, since they cost
 * less than judges; else the order is that of giro.toml.
 */
export function dueGates(
  gates: readonly GateDefinition[],
  scope: GateScope,
  named: readonly string[],
): readonly GateDefinition[] {
  const unknown = named.find((name) => !gates.some((gate) => gate.name === name));
  // Loading refuses such an Issue. Passing over the name here would be one check fewer, unseen.
  if (unknown !== undefined) throw new Error(`no such gate: ${JSON.stringify(unknown)}`);
  const due = gates.filter((gate) => gate.on.includes(scope) || named.includes(gate.name));
  return [...due.filter((gate) => gate.kind === 'command'), ...due.filter((gate) => gate.kind !== 'command')];
}
