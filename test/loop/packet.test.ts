import { describe, expect, test } from 'vitest';
import type { EscalationCause } from '../../src/event.js';
import { parseSpecSlug } from '../../src/issue.js';
import { issuePacket, type PacketParts } from '../../src/loop/packet.js';
import { issueOf } from './rig.js';

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
    findings: [{ message: 'expected 401', file: 'a.ts', line: 3 }],
    ...change,
  });
}

test('a packet says what was tried, the evidence, the question, and each way to answer', () => {
  expect(packet().lines).toMatchInlineSnapshot(`
    [
      "asked for: Log in",
      "tried: 2 attempts; no attempt is left",
      "evidence [6fe8fe91]: a.ts:3: expected 401",
      "question: expected 401. What should the next attempt do differently?",
      "option: edit docs/specs/s1/issues/01-a.md and run again; the text goes to the next attempt",
      "option: commit a fix on the branch giro-issue/s1/01-a, or change the files in its worktree, and run again; it is judged without an agent",
      "option: set state: wontfix in the Issue file, if nothing depends on it",
      "to edit it: git restore --source=giro/s1 -- docs/specs/s1",
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
    expect(packet({ findings }).lines.filter((line) => line.startsWith('evidence'))).toHaveLength(10);
  });
});
