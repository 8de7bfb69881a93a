/** What is read back from `## History` and from giro's own commits, as values. Reading is in `store/`. */
import type { Finding, IssueId, Oid, SpecSlug } from './issue.js';
import type { Charge } from './usage.js';

/** What the History of an Issue tells of findings, attempts and answers. */
export interface Story {
  /** What people answered so far, in their words, oldest first. */
  readonly answers: readonly string[];
  /** Ids of the findings that a person accepted for this Issue. */
  readonly accepted: ReadonlySet<string>;
  /** What is known against the newest work. */
  readonly against: readonly Finding[];
  /** What guards and the engine found on that work itself. */
  readonly own: readonly Finding[];
  /** Ids of those that a person could accept. */
  readonly acceptable: ReadonlySet<string>;
  /** The newest work is to be judged again as it is: a person answered, and nothing stands against it any more. */
  readonly canJudgeAgain: boolean;
  /** One line for each attempt since the answer before: verdict, size, duration, cost. */
  readonly tried: readonly string[];
}

/** What one entry took. */
export interface Spell {
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** Of its agent and of its gates, one after the other. */
  readonly durationMs: number;
  readonly charges: readonly Charge[];
}

/** What one History tells: all of it, and what of it counts since a person answered last. */
export interface Ledger {
  readonly all: readonly Spell[];
  readonly current: readonly Spell[];
  /** When a person answered last, in milliseconds since 1970; `null`: never. */
  readonly answeredAt: number | null;
}

/** One gate of an entry, as it stands there. */
export interface GateRecord {
  readonly gate: string;
  readonly verdict: 'pass' | 'fail';
  /** Red for nothing but what a person accepted by name. */
  readonly waived: boolean;
  /** True: the pass of an earlier run on the same code tree. */
  readonly cached: boolean;
  readonly exit: number | null;
  readonly durationMs: number | null;
  /** What it showed, in words, such as `48 tests, 2 skipped`. */
  readonly tests: string | null;
  /** First digits of the SHA-256 of what the gate demands, of its output, and of a judge's prompt. */
  readonly definition: string | null;
  readonly log: string | null;
  readonly prompt: string | null;
  /** Everything else that stands there, such as the judge and its cost. */
  readonly notes: readonly string[];
}

/** What a gate demanded when the Spec was validated. */
export interface DefinitionRecord {
  readonly gate: string;
  readonly definition: string;
  readonly demand: string;
}

/** What every proof says of its commit. */
export interface ProofCommon {
  readonly spec: SpecSlug;
  readonly commit: Oid;
  /** Tree of the commit, and its code tree (without `docs/specs/`) as it really is. */
  readonly tree: Oid;
  readonly codeTree: Oid;
  /** The code tree that the engine wrote into the commit; differs only when somebody tampered. */
  readonly claimed: string;
  /** The user's commit that the branch was made from. */
  readonly base: string;
  /** Version of giro; empty when the commit does not say. */
  readonly giro: string;
  readonly at: string;
}

/** That one Issue is integrated: its landed commit. */
export interface IssueProof extends ProofCommon {
  readonly kind: 'issue';
  readonly issue: IssueId;
  /** Attempts ever recorded. */
  readonly attempts: number;
  /** Of its last attempt. */
  readonly judged: readonly GateRecord[];
  /** Of the merged tree. */
  readonly integrated: readonly GateRecord[];
  /** Findings that a person accepted. */
  readonly waivers: readonly string[];
}

/** That a whole Spec is proved: its validated commit. */
export interface SpecProof extends ProofCommon {
  readonly kind: 'spec';
  /** What the engine wrote: hash of the gate definitions that were due. */
  readonly digest: string;
  readonly validated: readonly GateRecord[];
  readonly definitions: readonly DefinitionRecord[];
  /** By Issue number. */
  readonly issues: readonly IssueProof[];
  readonly waivers: readonly string[];
}

/** A proof of any level. */
export type Proof = IssueProof | SpecProof;
