import { expect, test } from 'vitest';
import type { Event } from '../../src/event.js';
import { ndjsonOf } from '../../src/report/ndjson.js';

const notice = (message: string): Event => ({
  type: 'run.notice',
  level: 'info',
  message,
  v: 1,
  at: '2026-11-30T22:14:05.000Z',
  run: 'r1',
});

test('an event is one line of JSON that begins with the common fields', () => {
  expect(ndjsonOf(notice('hello\nworld'))).toBe(
    '{"v":1,"at":"2026-11-30T22:14:05.000Z","run":"r1","type":"run.notice","level":"info","message":"hello\\nworld"}',
  );
});

test('no control, direction or line-separator character reaches the reader raw, and every one survives parsing', () => {
  const nasty = '\u001b[31m \u009b2J \u007f \u2028 \u2029 \u202e \u{e0041} \ud800 ok ⏳ 修复';
  const line = ndjsonOf(notice(nasty));
  expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
  expect((JSON.parse(line) as { message: string }).message).toBe(nasty);
});
