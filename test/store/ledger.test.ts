import { expect, test } from 'vitest';
import type { WorkNote } from '../../src/issue.js';
import { gateNotes } from '../../src/loop/notes.js';
import { readHistory } from '../../src/store/history.js';
import { appendAnswer, closeAttempt, describeWork, openAttempt } from '../../src/store/history-entries.js';
import { ledgerOf } from '../../src/store/ledger.js';
import { closePlan, openPlan } from '../../src/store/spec-history.js';
import { unknownUsage, type Usage } from '../../src/usage.js';
import { oidOf, verdictOf } from '../loop/rig.js';

const at = '2030-01-01T00:00:00.000Z';
const work: WorkNote = { files: 1, insertions: 2, deletions: 3, duration: '1m40s', subjects: [] };

function opened(history = '', driver = 'claude'): string {
  return openAttempt(history, { attempt: 1, at, driver, base: oidOf('base') });
}

function judged(history: string, usage: Usage | null): string {
  const [test] = verdictOf('pass').gates;
  if (test === undefined) throw new Error('no gate');
  const judge = { driver: 'strict', model: 'm · $7.00', promptHash: 'x' };
  const gates = gateNotes({
    passed: true,
    findings: [],
    waived: [],
    gates: [test, { ...test, gate: 'review', durationMs: 20_000, judge: usage === null ? null : judge, usage }],
  });
  return closeAttempt(history, { verdict: 'pass', gates, findings: [] });
}

function chargesIn(history: string) {
  return ledgerOf(readHistory(history)).all.flatMap((spell) => spell.charges);
}

test('an attempt tells what its worker and its judges took, and for how long', () => {
  const told = describeWork(opened(), { ...work, usage: { costUsd: 0.31, tokens: 12_300 } });
  const { all } = ledgerOf(readHistory(judged(told, { costUsd: 0.02, tokens: 500 })));
  expect(all).toEqual([
    {
      at: Date.parse(at),
      durationMs: 120_005,
      charges: [
        { role: 'worker', driver: 'claude', usage: { costUsd: 0.31, tokens: 12_300 } },
        { role: 'judge', driver: 'strict', usage: { costUsd: 0.02, tokens: 500 } },
      ],
    },
  ]);
});

test('a call that a kill cut off is one whose cost is unknown, also when its entry was closed later', () => {
  const unknown = [{ role: 'worker', driver: 'claude', usage: unknownUsage }];
  expect(chargesIn(opened())).toEqual(unknown);
  expect(chargesIn(closeAttempt(opened(), { verdict: 'fail', gates: [], findings: [] }))).toEqual(unknown);
});

test('who reports nothing is unknown; who called no model is none', () => {
  expect(chargesIn(describeWork(opened(), { ...work, usage: unknownUsage }))).toHaveLength(1);
  expect(chargesIn(describeWork(opened('', 'by hand'), { ...work, duration: 'by hand' }))).toEqual([]);
  expect(chargesIn(describeWork(opened(), work))).toEqual([]);
  expect(chargesIn(closeAttempt(opened(), { verdict: 'operation', gates: [], findings: [] }))).toEqual([]);
  expect(chargesIn(judged(describeWork(opened(), work), null))).toEqual([]);
  expect(chargesIn(judged(describeWork(opened(), work), unknownUsage))).toEqual([
    { role: 'judge', driver: 'strict', usage: unknownUsage },
  ]);
});

test('what a worker says or a file is called takes nothing away', () => {
  const line = { ...work, usage: { costUsd: 5, tokens: 1 }, summary: 'base 1 · $0.00', subjects: ['base x · $0.00'] };
  expect(chargesIn(describeWork(opened(), line))).toEqual([
    { role: 'worker', driver: 'claude', usage: { costUsd: 5, tokens: 1 } },
  ]);
});

test('a plan tells what its planner took', () => {
  const open = openPlan('', { at, driver: 'claude', base: oidOf('base'), round: 0 });
  const spent = { duration: '4m12s', usage: { costUsd: 1.5, tokens: 2_000_000 } };
  const history = closePlan(open, { verdict: 'pass', spent, findings: [], questions: [], planned: [] });
  expect(ledgerOf(readHistory(history)).all).toEqual([
    {
      at: Date.parse(at),
      durationMs: 252_000,
      charges: [{ role: 'planner', driver: 'claude', usage: { costUsd: 1.5, tokens: 2_000_000 } }],
    },
  ]);
  expect(chargesIn(open)).toEqual([{ role: 'planner', driver: 'claude', usage: unknownUsage }]);
});

test('an answer begins anew, and what was spent before it is still told', () => {
  const before = describeWork(opened(), { ...work, usage: { costUsd: 1, tokens: null } });
  const answeredAt = '2030-01-01T00:10:00.000Z';
  const { all, current, ...rest } = ledgerOf(readHistory(appendAnswer(before, { at: answeredAt, how: 'run again' })));
  expect([all.length, current.length]).toEqual([1, 0]);
  expect(rest).toEqual({ answeredAt: Date.parse(answeredAt) });
});
