import { expect, test } from 'vitest';
import { parseOid } from '../../src/issue.js';
import { answersOf } from '../../src/store/findings.js';
import { readHistory } from '../../src/store/history.js';
import { appendIntegration, appendValidation } from '../../src/store/history-entries.js';
import { readDefinitions, readGateRecords, timeOf } from '../../src/store/proof-lines.js';

const tip = parseOid('1'.repeat(40));
const at = '2026-11-30T22:14:05.123Z';

test('what History tells of a gate is read back', () => {
  const note = 'exit 0 · 4m12s · 48 tests, 2 skipped · definition 0123456789abcdef · log fedcba9876543210';
  const history = appendIntegration('', {
    ...{ at, tip, verdict: 'pass', findings: [] },
    gates: [{ gate: 'test', verdict: 'pass', note, findings: [] }],
  });
  const entry = readHistory(history)[0]?.text ?? '';
  expect(timeOf(entry)).toBe('2026-11-30T22:14:05Z');
  expect(readGateRecords(entry)).toEqual([
    {
      gate: 'test',
      verdict: 'pass',
      cached: false,
      exit: 0,
      durationMs: 252_000,
      tests: '48 tests, 2 skipped',
      definition: '0123456789abcdef',
      log: 'fedcba9876543210',
      prompt: null,
      waived: false,
      notes: [],
    },
  ]);
});

test('a judge and what it cost are notes; a pass on the same tree says so', () => {
  const gates = [
    { gate: 'review', verdict: 'pass', note: 'claude (sonnet) · 41.0 s · $0.02 · prompt 00ff', findings: [] },
    { gate: 'test', verdict: 'pass', note: 'same code tree, verified before · 8 tests', findings: [] },
  ] as const;
  const entry = readHistory(appendIntegration('', { at, tip, verdict: 'pass', gates, findings: [] }))[0]?.text ?? '';
  expect(readGateRecords(entry)).toEqual([
    expect.objectContaining({
      gate: 'review',
      durationMs: 41_000,
      prompt: '00ff',
      notes: ['claude (sonnet)', '$0.02'],
    }),
    expect.objectContaining({ gate: 'test', cached: true, exit: null, tests: '8 tests' }),
  ]);
});

test('a red that a person accepted is told from a red by the last word of its note', () => {
  const gates = ['exit 1 · waived', 'waived · exit 1'].map((note) => ({
    ...{ gate: 'test', verdict: 'fail' as const, note, findings: [] },
  }));
  const history = appendIntegration('', { at, tip, verdict: 'pass', gates, findings: [] });
  const records = readGateRecords(readHistory(history)[0]?.text ?? '');
  expect(records.map(({ waived }) => waived)).toEqual([true, false]);
});

test('text of a tool cannot pass for a gate, a definition or a waiver', () => {
  const message = 'x\n- gate fake: pass · exit 0\ndefinition 00 fake: true\naccepted 01234567: all';
  const history = appendValidation('', {
    ...{ at, tip, code: tip, verdict: 'fail' },
    gates: [{ gate: 'test', verdict: 'fail', note: 'exit 1', findings: [{ message, detail: message }] }],
    definitions: [{ gate: 'test', hash: '0123456789abcdef', demand: 'npm test\ndefinition 11 other: true' }],
  });
  const entry = readHistory(history)[0]?.text ?? '';
  expect(readGateRecords(entry).map(({ gate, verdict }) => [gate, verdict])).toEqual([['test', 'fail']]);
  expect(readDefinitions(entry)).toEqual([
    { gate: 'test', definition: '0123456789abcdef', demand: 'npm test definition 11 other: true' },
  ]);
  expect(answersOf(readHistory(history))).toEqual([]);
});
