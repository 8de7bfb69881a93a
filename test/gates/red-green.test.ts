import { describe, expect, test } from 'vitest';
import { isPassed, type GateCause, type GateVerdict } from '../../src/gates/gate.js';
import { judgeRedGreen, testFile, type RedGreenRun } from '../../src/gates/red-green.js';
import { blankVerdict } from '../../src/gates/run.js';
import type { Evidence } from '../../src/issue.js';
import { gate } from './bench.js';

interface Ran {
  readonly passed?: readonly string[] | number;
  readonly failed?: readonly string[] | number;
  readonly cause?: GateCause;
}

function verdict({ passed = 0, failed = 0, cause }: Ran): GateVerdict {
  const pass = typeof passed === 'number' ? passed : passed.length;
  const fail = typeof failed === 'number' ? failed : failed.length;
  const evidence: Evidence = {
    runner: 'tap',
    tests: pass + fail,
    failed: fail,
    skipped: 0,
    failures: typeof failed === 'number' ? [] : failed,
    ...(typeof passed === 'number' ? {} : { passes: passed }),
  };
  const red = cause ?? (fail > 0 ? 'failed' : null);
  return { ...blankVerdict(gate('test', 'x')), verdict: red === null ? 'pass' : 'fail', cause: red, evidence };
}

function run(base: Ran, probe: Ran, work: Ran): RedGreenRun {
  return { gate: 'test', base: verdict(base), probe: verdict(probe), work: verdict(work) };
}

const files = ['test/a.test.ts'];

function told(runs: readonly RedGreenRun[], changed = files): string {
  const { cause, findings, shown } = judgeRedGreen(runs, changed);
  return cause === null ? shown : [cause, ...findings.map(({ message }) => message)].join('; ');
}

describe('the new tests of an Issue must fail without its change', () => {
  test('and are its proof when they do', () => {
    const named = run({ passed: ['a'] }, { passed: ['a'], failed: ['b', 'c'] }, { passed: ['a', 'b', 'c'] });
    expect(told([named])).toBe('2 tests fail without the change');
    expect(told([run({ passed: 1 }, { passed: 1, failed: ['b'] }, { passed: 2 })])).toBe(
      '1 test fails without the change',
    );
  });

  test('a changed test alone needs no new name', () => {
    expect(told([run({ passed: ['a'] }, { failed: ['a'] }, { passed: ['a'] })])).toBe(
      '1 test fails without the change',
    );
  });

  test('one that passes without it is named', () => {
    const runs = [run({ passed: ['a'] }, { passed: ['a', 'idle'], failed: ['b'] }, { passed: ['a', 'b', 'idle'] })];
    expect(told(runs)).toBe('failed; red-green: idle is new and passes without the change (gate test)');
    expect(judgeRedGreen(runs, files).findings).toMatchObject([{ gate: 'red-green', test: 'idle' }]);
  });

  test('where names are not known they are counted', () => {
    expect(told([run({ passed: 3 }, { passed: 4, failed: ['b'] }, { passed: 5 })])).toBe(
      'failed; red-green: 2 tests are new, and 1 test fails without the change (gate test: b)',
    );
    const redBase = run({ passed: 3, failed: ['old'] }, { passed: 3, failed: ['old', 'b'] }, { passed: 5 });
    expect(told([redBase])).toBe('1 test fails without the change');
  });

  test('a file that cannot be loaded without the change has failed', () => {
    expect(told([run({ passed: 3 }, { passed: 3, failed: 1 }, { passed: 8 })])).toBe('1 test fails without the change');
  });

  test('all green without it is a finding, and so is no test file', () => {
    const green = [run({ passed: 1 }, { passed: 2 }, { passed: 2 })];
    expect(told(green)).toContain('failed; red-green: test/a.test.ts: every gate is green without the change');
    expect(judgeRedGreen(green, files).findings).toMatchObject([{ file: 'test/a.test.ts' }]);
    expect(told([], [])).toContain('no test file was added or changed');
    expect(told([])).toContain('no command gate is due');
  });

  test('a gate that tests nothing does not stand in for one that does', () => {
    const lint: RedGreenRun = { ...run({}, { failed: 1 }, {}), gate: 'lint' };
    expect(told([lint, run({ passed: 1 }, { passed: 2 }, { passed: 2 })])).toContain('green without the change');
    const plain = { ...blankVerdict(gate('test', 'x')), verdict: 'pass' } as const;
    const red = { ...blankVerdict(gate('test', 'x')), cause: 'failed' } as const;
    expect(told([{ gate: 'test', base: plain, probe: red, work: plain }])).toBe('red without the change');
  });

  test('what could not run without it is not charged to the work', () => {
    const broken = run({ passed: 1 }, { cause: 'errored' }, { passed: 2 });
    expect(told([broken])).toMatch(/^errored; red-green: could not be tried/);
  });
});

test('what was shown is green, and nothing that has a cause, a finding or a process beside it', () => {
  const shown: GateVerdict = { ...blankVerdict(gate('red-green', 'x')), verdict: 'pass', shown: '1 test fails' };
  expect(isPassed({ gates: [shown] })).toBe(true);
  const without: GateVerdict = { ...blankVerdict(gate('red-green', 'x')), verdict: 'pass' };
  for (const other of [
    without,
    { ...shown, verdict: 'fail' } as const,
    { ...shown, cause: 'failed' } as const,
    { ...shown, findings: [{ message: 'x' }] },
    { ...shown, cached: true },
    { ...shown, ended: { kind: 'exited', code: 1 } } as const,
  ])
    expect(isPassed({ gates: [other] }), JSON.stringify(other)).toBe(false);
});

test.each([
  ['test/fixtures/a.json', true],
  ['src/__tests__/a.ts', true],
  ['src/login.test.tsx', true],
  ['pkg/cart_test.go', true],
  ['tests/test_cart.py', true],
  ['app/test_cart.py', true],
  ['spec/cart_spec.rb', true],
  ['src/test/java/CartTest.java', true],
  ['checks/own.txt', true],
  ['src/latest.ts', false],
  ['src/contest.py', false],
  ['src/lib.rs', false],
])('%s is of the tests: %s', (path, expected) => {
  expect(testFile(['checks'])(path)).toBe(expected);
});
