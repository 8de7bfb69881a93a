import { describe, expect, test } from 'vitest';
import type { EscalationCause } from '../../src/event.js';
import { findingId, parseSpecSlug } from '../../src/issue.js';
import { issuePacket, type PacketParts } from '../../src/loop/packet.js';
import { packetLines, readPacket } from '../../src/packet.js';
import { issueOf } from './rig.js';

const finding = { message: 'expected 401', file: 'a.ts', line: 3, gate: 'test', detail: 'not ok 1\n\nnot ok 2' };

function packet(change: Partial<PacketParts> = {}) {
  const spec = parseSpecSlug('s1');
  if (spec === undefined) throw new Error('not a name');
  return issuePacket({
    spec,
    issue: issueOf('01-a').id,
    title: 'Log in',
    branch: 'giro-issue/s1/01-a',
    cause: 'budget-spent',
    attempts: 2,
    why: 'no attempt is left',
    tried: ['1: fail · claude · 2 files +5 -1 · 4m12s · $0.31', '2: fail · claude · 1 file +1 -1 · 40s · cost unknown'],
    findings: [finding],
    acceptable: new Set([findingId(finding)]),
    changes: [
      { path: 'a.ts', insertions: 5, deletions: 1 },
      { path: 'b.ts', insertions: 20, deletions: 0 },
    ],
    base: '1a2b3c4',
    logs: ['.git/giro/runs/r1/gates/01-a.issue-2.test.log'],
    ...change,
  });
}

test('a packet says what was tried, the evidence, the question, and each way to answer', () => {
  expect(packetLines(packet())).toMatchInlineSnapshot(`
    [
      "asked for: Log in",
      "tried: 2 attempts; no attempt is left",
      "attempt 1: fail · claude · 2 files +5 -1 · 4m12s · $0.31",
      "attempt 2: fail · claude · 1 file +1 -1 · 40s · cost unknown",
      "evidence [21a0164a]: a.ts:3: expected 401",
      "      not ok 1",
      "      not ok 2",
      "changed: 2 files +25 -1: b.ts +20 -0, a.ts +5 -1",
      "see: git diff 1a2b3c4 giro-issue/s1/01-a -- . ':!docs/specs'",
      "log: .git/giro/runs/r1/gates/01-a.issue-2.test.log",
      "question: expected 401. What should the next attempt do differently?",
      "option: giro answer s1/01-a "<text>" -> the next attempt is told the text; the budget starts again",
      "option: giro answer s1/01-a --retry -> tried again as it is; the budget starts again",
      "option: giro answer s1/01-a --accept 21a0164a -> this finding no longer blocks this Issue: a waiver, named in the proof",
      "option: commit a fix on the branch giro-issue/s1/01-a, or change the files in its worktree -> your work is judged and integrated without an agent",
      "option: edit docs/specs/s1/issues/01-a.md (git restore --source=giro/s1 -- docs/specs/s1/issues/01-a.md brings it here) -> the next attempt is told the new text",
      "option: giro answer s1/01-a --wontfix -> given up; refused while another Issue depends on it",
      "then: giro implement s1",
    ]
  `);
});

describe('the question', () => {
  test('is the worker’s own when it asked one', () => {
    expect(packet({ cause: 'blocked', asked: ' Which database? ' }).question).toBe('Which database?');
    expect(packet({ cause: 'blocked', asked: '  ' }).question).toContain('says it is blocked: expected 401');
  });

  test.each<EscalationCause>([
    'budget-spent',
    'no-progress',
    'operation-failures',
    'blocked',
    'cannot-run-here',
    'lane-held',
  ])('asks something for %s, with or without evidence', (cause) => {
    expect(packet({ cause }).question).toMatch(/expected 401.*\?$/);
    expect(packet({ cause, findings: [] }).question).toMatch(/no attempt is left.*\?$/);
  });

  test('evidence is bounded', () => {
    const findings = Array.from({ length: 50 }, (_, index) => ({ message: String(index) }));
    const lines = packetLines(packet({ findings }));
    expect(lines.filter((line) => line.startsWith('evidence'))).toHaveLength(8);
    expect(lines).toContain('more: 42');
  });
});

test('it is read back as it was written', () => {
  const many = Array.from({ length: 12 }, (_, index) => ({ message: `red ${String(index)}`, detail: 'one\ntwo' }));
  for (const one of [packet(), packet({ findings: many, changes: [], logs: [] })]) {
    expect(readPacket(packetLines(one).join('\n'))).toEqual(one);
  }
});

test('what came to no verdict has no id, and is not offered to be accepted', () => {
  const lines = packetLines(packet({ acceptable: new Set() })).join('\n');
  expect(lines).toContain('evidence: a.ts:3: expected 401');
  expect(lines).not.toContain('--accept');
});

test('it fits on a screen, whatever was found', () => {
  const findings = Array.from({ length: 99 }, (_, index) => ({
    message: `red ${String(index)}`,
    detail: 'x\n'.repeat(99),
  }));
  const changes = Array.from({ length: 99 }, (_, index) => ({
    path: `${String(index)}.ts`,
    insertions: 1,
    deletions: 0,
  }));
  const tried = Array.from({ length: 99 }, (_, index) => `${String(index)}: fail`);
  const logs = Array.from({ length: 99 }, (_, index) => `${String(index)}.log`);
  expect(packetLines(packet({ findings, changes, tried, logs })).length).toBeLessThan(80);
});
