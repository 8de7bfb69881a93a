/** The unit of work inside a Spec, as values. Parsing is in `config/`, writing in `store/`. */
import { createHash } from 'node:crypto';
import type { Usage } from './usage.js';

declare const specSlug: unique symbol;
declare const issueId: unique symbol;
declare const oid: unique symbol;

/** Name of a Spec: lower-case letters, digits and dashes. Safe as a ref component and a folder. */
export type SpecSlug = string & { readonly [specSlug]: true };

/** Name of an Issue inside its Spec: `NN-slug`, the file name without `.md`. */
export type IssueId = string & { readonly [issueId]: true };

/** Full hexadecimal object name of git (40 or 64 characters). */
export type Oid = string & { readonly [oid]: true };

const slugPattern = /^[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?$/;
const issuePattern = /^([0-9]{1,9})-([a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?)$/;
const oidPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** Parses a Spec's name; `undefined` when it is not one. */
export function parseSpecSlug(text: string): SpecSlug | undefined {
  return slugPattern.test(text) ? (text as SpecSlug) : undefined;
}

/** Parses `NN-slug`; `undefined` when it is not one. */
export function parseIssueId(text: string): IssueId | undefined {
  return issuePattern.test(text) ? (text as IssueId) : undefined;
}

/** Parses a full object name; throws on anything else, since only git writes them. */
export function parseOid(text: string): Oid {
  if (!oidPattern.test(text)) throw new Error(`not an object name: ${JSON.stringify(text)}`);
  return text as Oid;
}

/** Shows an object name as people read it: its first seven digits. */
export function shortOid(oid: Oid): string {
  return oid.slice(0, 7);
}

/** The number NN of an Issue, compared as a number (`010` is 10). */
export function issueNumber(id: IssueId): number {
  return Number.parseInt(id, 10);
}

/** Sorts Issues as a person expects: by number, then by name. */
export function compareIssueIds(left: IssueId, right: IssueId): number {
  return issueNumber(left) - issueNumber(right) || (left < right ? -1 : left > right ? 1 : 0);
}

/** The durable states of an Issue (DESIGN 4). */
export type IssueState = 'ready' | 'in-progress' | 'done' | 'needs-human' | 'wontfix';

/** Where an Issue in progress stands: the engine's checkpoint. */
export type Phase = 'working' | 'judging' | 'integrating';

/** One Issue as read from its file. */
export interface Issue {
  readonly id: IssueId;
  /** Path inside the repository, with `/`. */
  readonly path: string;
  readonly title: string;
  /** Everything after the frontmatter, byte for byte, without `## History`. */
  readonly body: string;
  readonly state: IssueState;
  /** Resolved and deduplicated ids. */
  readonly dependsOn: readonly IssueId[];
  readonly touches: readonly string[];
  readonly resources: readonly string[];
  readonly maxAttempts?: number;
  /** More gates by name; never fewer. */
  readonly gates: readonly string[];
  /** Globs of tests it may change although tests are protected from shrinking. */
  readonly tests: readonly string[];
  /** The round whose validation it answers; absent: it is no gap Issue. */
  readonly gap?: number;
  /** What its tests must show beside being green, as `[evidence] proof`. */
  readonly proof?: 'red-green';
  /** Present while in progress. */
  readonly checkpoint?: { readonly attempt: number; readonly phase: Phase };
  /** The text of `## History` with its heading; empty when there is none. */
  readonly history: string;
}

/** One reason for a fail. */
export interface Finding {
  /** Its name, when it was read back from History; absent: `findingId` computes it. */
  readonly id?: string;
  /** One line a person or a model can act on. */
  readonly message: string;
  /** The gate it comes from; absent for the engine's own findings. */
  readonly gate?: string;
  /** The rule of the gate or guard that it breaks, such as `shrink`. */
  readonly rule?: string;
  /** Identity of the test that failed, as its runner names it. */
  readonly test?: string;
  readonly file?: string;
  readonly line?: number;
  /** A bounded tail of the output that shows it. */
  readonly detail?: string;
  /** Tells what one red shows from what another does that has the same message: a digest of the failed tests or the output. */
  readonly shows?: string;
}

/** A red that a person accepted, by name (L10). */
export interface Waived {
  /** Id of the finding. */
  readonly finding: string;
  /** An answer to this Issue or Spec, or a rule of the person's giro.toml. */
  readonly by: 'answer' | 'config';
  readonly what: string;
}

/** Name of a finding, the same for the same finding in a later attempt: eight hexadecimal digits. */
export function findingId(finding: Finding): string {
  if (finding.id !== undefined) return finding.id;
  const { gate = '', rule = '', file = '', test = '', shows, message } = finding;
  const parts = [gate, rule, file, test, withoutPlaces(message), ...(shows === undefined ? [] : [shows])];
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 8);
}

/** Digests what a red run shows, line by line, in any order and without times and places. Absent where it shows nothing. */
export function digestOf(lines: readonly string[]): string | undefined {
  const told = [...new Set(lines.map(withoutNumbers).filter((line) => line !== ''))].sort();
  return told.length === 0 ? undefined : createHash('sha256').update(told.join('\n')).digest('hex').slice(0, 16);
}

function withoutNumbers(line: string): string {
  return withoutPlaces(line.replaceAll('file://', '').replace(/^\s*\d+:\d+\b/, '<line>'));
}

/** What of a message is the reason itself: not when, not on which line, not in which temporary folder. */
function withoutPlaces(message: string): string {
  const absoluteFolders = /(^|[\s"'`(=[<:,])(?:\/[\w.@+-]+)+\//g;
  return withoutTimes(message.replace(absoluteFolders, '$1/'))
    .replace(/\bline \d+/gi, 'line <line>')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Replaces times, durations, line numbers and long hexadecimal names, which differ between two runs of the same thing. */
export function withoutTimes(text: string): string {
  return text
    .replace(/\b\d{4}-\d\d-\d\d(?:[T ][\d:.]+Z?)?|\b\d{1,2}:\d\d:\d\d(?:\.\d+)?/g, '<time>')
    .replace(/\b(?:\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?))+\b/g, '<time>')
    .replace(/:\d+(?::\d+)?\b/g, ':<line>')
    .replace(/\b(?:0x[0-9a-f]+|[0-9a-f]{12,})\b/gi, '<id>');
}

/** What a gate's run says that it tested, read from the closing lines of its test runners. */
export interface Evidence {
  /** Which runners were read, such as `vitest`; several are joined with ` + `. */
  readonly runner: string;
  /** Tests that ran; `null`: some did, and the runner does not say how many. */
  readonly tests: number | null;
  /** Tests that failed, and whatever else the runner counts as broken, such as a file that could not be loaded. */
  readonly failed: number;
  /** Tests that were skipped, filtered out or left for later. */
  readonly skipped: number;
  /** Identities of failed tests; fewer than `failed` where the runner does not name everything that broke. */
  readonly failures: readonly string[];
  /** Identities of all tests that passed; absent where the runner does not list them, or lists too many to keep. */
  readonly passes?: readonly string[];
}

/** How an attempt was judged. */
export type AttemptVerdict = 'pass' | 'fail' | 'operation' | 'stopped';

/** One gate as it stands in History. */
export interface GateNote {
  readonly gate: string;
  readonly verdict: 'pass' | 'fail';
  readonly note: string;
  readonly findings: readonly Finding[];
}

/** What the worker left, as it stands in History. */
export interface WorkNote {
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
  readonly duration: string;
  readonly summary?: string;
  readonly question?: string;
  /** Of the call of a model; absent: none was made. */
  readonly usage?: Usage;
  readonly subjects: readonly string[];
}
