import { describe, expect, test } from 'vitest';
import { dueGates, isPassed, verdictOf, type GateCause, type GateVerdict } from '../../src/gates/gate.js';
import { findingId, type Finding } from '../../src/issue.js';
import { gate } from './bench.js';

const green: GateVerdict = {
  gate: 'test',
  verdict: 'pass',
  cause: null,
  cached: false,
  ended: { kind: 'exited', code: 0 },
  durationMs: 5,
  findings: [],
  evidence: null,
  waiver: null,
  log: 'test.log',
  logHash: null,
  definition: 'definition',
  judge: null,
  usage: null,
};

describe('passed', () => {
  test('is what exited with 0, and a pass that was paid for before', () => {
    expect(isPassed({ gates: [green] })).toBe(true);
    expect(isPassed({ gates: [green, { ...green, cached: true, ended: null, log: null }] })).toBe(true);
  });

  const shapes: Readonly<Record<string, readonly GateVerdict[]>> = {
    'no gate at all': [],
    'a fail among passes': [green, { ...green, verdict: 'fail', cause: 'failed' }, green],
    'a fail without a cause': [{ ...green, verdict: 'fail' }],
    'a pass with a cause': [{ ...green, cause: 'errored' }],
    'a pass with a finding': [{ ...green, findings: [{ message: 'but' }] }],
    'a pass of which no process is known': [{ ...green, ended: null }],
    'a pass that exited with 1': [{ ...green, ended: { kind: 'exited', code: 1 } }],
    'a pass that was killed': [{ ...green, ended: { kind: 'signalled', signal: 'SIGKILL' } }],
    'a pass that timed out': [{ ...green, ended: { kind: 'timed-out', limitMs: 1 } }],
    'a pass that was ended': [{ ...green, ended: { kind: 'stalled', reason: 'output limit' } }],
    'a pass that was stopped': [{ ...green, ended: { kind: 'cancelled', reason: 'stop' } }],
    'a pass that could not start': [{ ...green, ended: { kind: 'could-not-start', reason: 'no bash' } }],
    'a cached pass that ran': [{ ...green, cached: true }],
    'a cached fail': [{ ...green, verdict: 'fail', cause: 'failed', cached: true, ended: null }],
  };
  for (const [name, gates] of Object.entries(shapes)) {
    test(`is not ${name}`, () => {
      expect(isPassed({ gates })).toBe(false);
    });
  }
});

describe('what a person accepted', () => {
  const [one, two]: [Finding, Finding] = [
    { gate: 'test', message: 'one' },
    { gate: 'test', message: 'two' },
  ];
  const red: GateVerdict = { ...green, verdict: 'fail', cause: 'failed', findings: [one, two] };
  const ids = (...findings: readonly Finding[]): ReadonlySet<string> => new Set(findings.map(findingId));

  const waiver = (finding: Finding): object => ({ finding: findingId(finding), by: 'answer', what: finding.message });

  test('does not block; everything else does', () => {
    expect(verdictOf([green, red], ids(one, two))).toMatchObject({
      passed: true,
      findings: [],
      waived: [waiver(one), waiver(two)],
    });
    expect(verdictOf([green, red], ids(one))).toMatchObject({ passed: false, findings: [two], waived: [waiver(one)] });
    expect(verdictOf([green, red])).toMatchObject({ passed: false, findings: [one, two], waived: [] });
  });

  test('by a rule of giro.toml is named as that', () => {
    const gates = [{ ...red, waiver: '[evidence] baseline' }];
    const verdict = verdictOf(gates);
    expect(verdict).toMatchObject({ passed: true, findings: [] });
    expect(verdict.waived.map(({ by }) => by)).toEqual(['config', 'config']);
    expect(verdict.waived[0]?.what).toBe('one ([evidence] baseline)');
  });

  test('changes nothing when it does not occur', () => {
    expect(verdictOf([green], ids(one))).toMatchObject({ passed: true, waived: [] });
    expect(verdictOf([], ids(one)).passed).toBe(false);
  });

  test.each<GateCause>(['cannot-run-here', 'errored', 'cancelled'])(
    'is no verdict that was never made: %s',
    (cause) => {
      const verdict = verdictOf([{ ...red, cause }], ids(one, two));
      expect(verdict).toMatchObject({ passed: false, findings: [one, two], waived: [] });
    },
  );

  test.each<[string, GateVerdict]>([
    ['a red without a finding', { ...red, findings: [] }],
    ['a red without a cause', { ...red, cause: null }],
    ['a pass with a finding', { ...green, findings: [one] }],
  ])('is not %s', (_, gate) => {
    expect(isPassed({ gates: [gate] }, ids(one, two))).toBe(false);
  });
});

describe('due', () => {
  const gates = [
    gate('quick', 'true', { on: ['issue'] }),
    gate('slow', 'true', { on: ['integration', 'spec'] }),
    gate('review', 'true', { on: [] }),
  ];
  const names = (scope: 'issue' | 'integration' | 'spec', named: readonly string[]): readonly string[] =>
    dueGates(gates, scope, named).map(({ name }) => name);

  test('are the gates of the scope and those named, in the order of giro.toml, each once', () => {
    expect(names('issue', [])).toEqual(['quick']);
    expect(names('integration', [])).toEqual(['slow']);
    expect(names('issue', ['review', 'slow', 'quick'])).toEqual(['quick', 'slow', 'review']);
  });

  test('naming a gate that does not exist is never passed over', () => {
    expect(() => names('issue', ['reviev'])).toThrow('no such gate: "reviev"');
  });
});
