import { expect, test } from 'vitest';
import { estimatesOf } from '../../src/cli/estimates.js';
import { parseIssueId, parseOid, type AttemptVerdict, type IssueId } from '../../src/issue.js';
import { readHistory, type HistoryEntry } from '../../src/store/history.js';
import { closeAttempt, describeWork, openAttempt } from '../../src/store/history-entries.js';
import { eventsOf, makeProject } from '../rig/giro.js';

function id(text: string): IssueId {
  const parsed = parseIssueId(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
}

/** The entries of a History of attempts, each as long as said. */
function entries(
  ...attempts: readonly (readonly [duration: string, verdict: AttemptVerdict | 'open'])[]
): readonly HistoryEntry[] {
  return readHistory(history(...attempts));
}

/** A History of attempts, each as long as said. */
function history(...attempts: readonly (readonly [duration: string, verdict: AttemptVerdict | 'open'])[]): string {
  const base = parseOid('a'.repeat(40));
  return attempts.reduce((text, [duration, verdict], index) => {
    const opened = openAttempt(text, { attempt: index + 1, at: '2030-01-02T03:04:05Z', driver: 'claude', base });
    const size = { files: 1, insertions: 1, deletions: 0, subjects: [`3 files +1 -1 · 9h00m · x`] };
    const described = describeWork(opened, { ...size, duration, question: 'base x · 1 file +1 -1 · 8h00m' });
    if (verdict === 'open') return described;
    return closeAttempt(described, { verdict, work: { commit: base, tree: base }, gates: [], findings: [] });
  }, '');
}

test('an Issue counts as its typical attempt; one without any as the typical Issue', () => {
  const estimate = estimatesOf(
    new Map([
      [id('1-done'), entries(['4m12s', 'pass'])],
      [id('2-tried'), entries(['10.0 s', 'fail'], ['30.0 s', 'fail'], ['12.0 s', 'fail'])],
      [id('3-long'), entries(['1h00m', 'fail'])],
      [id('4-new'), []],
    ]),
  );
  expect(['1-done', '2-tried', '3-long', '4-new'].map((name) => estimate(id(name)))).toEqual([
    252_000, 12_000, 3_600_000, 252_000,
  ]);
});

test('attempts that broke, were stopped, are open, or had no agent tell nothing', () => {
  const nothing = entries(['900 ms', 'operation'], ['5m00s', 'stopped'], ['by hand', 'fail'], ['1m00s', 'open']);
  const estimate = estimatesOf(new Map([[id('1-a'), nothing]]));
  expect(estimate(id('1-a'))).toBe(1);
});

test('what took long in earlier runs starts first', async () => {
  const body = (text: string): string => `What is wanted.\n\n${text}`;
  const project = await makeProject({
    issues: {
      '01-short': { body: body(history(['10.0 s', 'fail'])) },
      '02-new': {},
      '03-long': { body: body(history(['5m00s', 'fail'])) },
    },
  });
  const run = await project.implement('--concurrency', '1');
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'attempt.started').map(({ issue }) => issue)).toEqual(['03-long', '02-new', '01-short']);
});
