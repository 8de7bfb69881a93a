import { expect, test } from 'vitest';
import type { Ended } from '../../src/event.js';
import type { GateVerdict } from '../../src/gates/gate.js';
import { gateNotes, workNote } from '../../src/loop/notes.js';
import { blocked, done, takenOf, verdictOf } from './rig.js';

function noteOf(change: Partial<GateVerdict>): string | undefined {
  const [gate] = verdictOf('fail').gates;
  if (gate === undefined) throw new Error('no gate');
  return gateNotes({
    passed: false,
    findings: [],
    waived: [],
    gates: [{ ...gate, durationMs: 12_400, definition: '0123456789abcdef0123', ...change }],
  })[0]?.note;
}

test.each<[string, Partial<GateVerdict>, string]>([
  ['an exit', { ended: { kind: 'exited', code: 1 } }, 'exit 1 · 12.4 s'],
  ['a signal', { ended: { kind: 'signalled', signal: 'SIGSEGV' } }, 'killed by SIGSEGV · 12.4 s'],
  ['a time-out', { ended: { kind: 'timed-out', limitMs: 1 }, cause: 'timed-out' }, 'timed out · timed-out · 12.4 s'],
  [
    'what could not start',
    { ended: { kind: 'could-not-start', reason: 'no such file' }, cause: 'cannot-run-here' },
    'no such file · cannot-run-here · 12.4 s',
  ],
  ['what did not run', { ended: null, cause: 'errored' }, 'not run · errored · 12.4 s'],
  ['a pass paid for before', { cached: true, ended: null, cause: null }, 'same code tree, verified before'],
])('a gate line tells %s', (_name, change, note) => {
  expect(noteOf(change)).toBe(`${note} · definition 0123456789abcdef`);
});

test('a gate line binds its verdict to the whole output and to what a judge was told', () => {
  const judge = { driver: 'claude', model: 'sonnet', promptHash: 'b'.repeat(64) };
  const note = noteOf({ ended: { kind: 'exited', code: 0 }, logHash: 'a'.repeat(64), judge });
  expect(note).toMatch(/ · log a{16} · prompt b{16}$/);
});

test('what a worker left and said', () => {
  const ended: Ended = { kind: 'exited', code: 0 };
  const outcome = { ended, durationMs: 252_000, tail: '', usage: { costUsd: null, tokens: null }, model: null };
  const taken = { ...takenOf(null), subjects: ['fix'] };
  expect(workNote(taken, { ...outcome, result: done({ summary: 'did it' }) })).toEqual({
    files: 1,
    insertions: 1,
    deletions: 0,
    duration: '4m12s',
    summary: 'did it',
    usage: { costUsd: null, tokens: null },
    subjects: ['fix'],
  });
  const notStarted: Ended = { kind: 'could-not-start', reason: 'no such file' };
  expect(workNote(taken, { ...outcome, ended: notStarted, result: done() })).not.toHaveProperty('usage');
  expect(workNote(taken, { ...outcome, result: blocked('which?') })).toMatchObject({ question: 'which?' });
  expect(workNote(taken, { ...outcome, result: blocked() })).toMatchObject({ question: '' });
  expect(workNote(taken, { ...outcome, result: { kind: 'failed', reason: 'x' } })).not.toHaveProperty('question');
});
