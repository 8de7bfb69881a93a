/**
 * Red-green: the tests that an Issue adds or changes must fail without its change. They are run on the Issue's base with
 * nothing of the Issue but its test files, and compared with what the gates came to on the base and on the work. Pure.
 */
import type { Evidence, Finding } from '../issue.js';
import { printable } from '../platform/text.js';
import { isNamed } from './evidence.js';
import type { GateVerdict } from './gate.js';
import { matcher } from './guard-globs.js';

/** Name under which it stands beside the gates of `[verify]`. */
export const redGreenName = 'red-green';

const testPaths =
  /(?:^|\/)(?:tests?|__tests__|specs?|e2e|cypress|testdata|__snapshots__)\/|[._-](?:tests?|spec|cy|e2e)\.[cm]?[jt]sx?$|(?:^|\/)(?:test_[^/]*|[^/]*_test|conftest)\.py$|_test\.(?:go|exs?|rb)$|_spec\.rb$|(?:Tests?|IT|Spec)\.(?:java|kt|cs|scala|groovy)$/;

/** Makes the test whether a file belongs to the tests: by its name or folder, or by patterns of the person. */
export function testFile(patterns: readonly string[]): (path: string) => boolean {
  const named = matcher(patterns);
  return (path) => testPaths.test(path) || named(path);
}

/** What a gate came to on three trees. */
export interface RedGreenRun {
  readonly gate: string;
  /** The base as it is. */
  readonly base: GateVerdict;
  /** The base with the Issue's test files. */
  readonly probe: GateVerdict;
  /** The Issue's work. */
  readonly work: GateVerdict;
}

/** What it comes to: findings against the work, or in a few words what was shown. */
export interface RedGreenResult {
  readonly cause: 'failed' | 'errored' | null;
  readonly findings: readonly Finding[];
  readonly shown: string;
}

/** Judges the runs of all command gates that are due on the Issue. */
export function judgeRedGreen(runs: readonly RedGreenRun[], files: readonly string[]): RedGreenResult {
  if (files.length === 0)
    return fails([finding('no test file was added or changed, so nothing shows that the change is tested')]);
  if (runs.length === 0) return fails([finding('no command gate is due on the Issue, so nothing runs its tests')]);
  const testing = runs.filter(({ work }) => work.evidence !== null && work.evidence.tests !== 0);
  const asked = testing.length > 0 ? testing : runs;
  const red = asked.filter(({ probe }) => probe.cause === 'failed' || probe.cause === 'timed-out');
  if (red.length === 0) return nothingRed(asked, files);
  const findings = red.flatMap(withoutChange);
  return findings.length > 0 ? fails(findings) : { cause: null, findings: [], shown: shownBy(red) };
}

function nothingRed(asked: readonly RedGreenRun[], files: readonly string[]): RedGreenResult {
  const broken = asked.find(({ probe }) => probe.cause === 'errored' || probe.cause === 'cannot-run-here');
  if (broken !== undefined) {
    const reason = broken.probe.findings[0]?.message ?? broken.gate;
    return { ...fails([finding(`could not be tried without the change: ${reason}`)]), cause: 'errored' };
  }
  const [file, ...others] = files;
  const green = finding(
    `${listed(files)}: every gate is green without the change; tests that cannot fail prove nothing`,
  );
  return fails([file === undefined || others.length > 0 ? green : { ...green, file }]);
}

/** New tests that pass where the change is not: by name where all names are known, else by number. */
function withoutChange({ gate, base, probe, work }: RedGreenRun): readonly Finding[] {
  const [before, without, after] = [base.evidence, probe.evidence, work.evidence];
  if (without === null || after === null) return [];
  const known = namesOf(base);
  const passed = without.passes;
  if (known !== null && passed !== undefined && after.passes !== undefined) {
    const idle = after.passes.filter((name) => !known.has(name) && passed.includes(name));
    return idle.map((test) => ({ ...finding(`${test} is new and passes without the change (gate ${gate})`), test }));
  }
  if (before === null || before.tests === null || after.tests === null || !isNamed(without)) return [];
  const fresh = after.tests - before.tests;
  const failing = without.failed - before.failed;
  if (fresh <= 0 || failing >= fresh) return [];
  const what = fresh === 1 ? '1 test is new' : `${String(fresh)} tests are new`;
  return [finding(`${what}, and ${failed(failing)} without the change (gate ${gate}: ${listed(without.failures)})`)];
}

/** All names that a gate knows on the base; `null`: it does not say all of them. */
function namesOf({ evidence, verdict }: GateVerdict): ReadonlySet<string> | null {
  if (evidence === null) return null;
  if (evidence.tests === 0 && evidence.failed === 0) return new Set();
  const isComplete = evidence.passes !== undefined || evidence.tests === evidence.failures.length;
  if (!isComplete || (verdict === 'fail' && !isNamed(evidence))) return null;
  return new Set([...(evidence.passes ?? []), ...evidence.failures]);
}

function shownBy(red: readonly RedGreenRun[]): string {
  const more = ({ evidence: before }: GateVerdict, after: Evidence): number => after.failed - (before?.failed ?? 0);
  const sum = red.reduce(
    (total, { base, probe }) => total + (probe.evidence === null ? 0 : more(base, probe.evidence)),
    0,
  );
  return sum > 0 ? `${failed(sum)} without the change` : 'red without the change';
}

function failed(number: number): string {
  return number === 1 ? '1 test fails' : `${String(number)} tests fail`;
}

function fails(findings: readonly Finding[]): RedGreenResult {
  return { cause: 'failed', findings, shown: '' };
}

function finding(what: string): Finding {
  return { message: printable(`red-green: ${what}`), gate: redGreenName };
}

const mostListed = 5;

function listed(names: readonly string[]): string {
  const more = names.length - mostListed;
  return names.slice(0, mostListed).join(', ') + (more > 0 ? ` and ${String(more)} more` : '');
}
