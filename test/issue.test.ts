import { describe, expect, test } from 'vitest';
import { findingId, type Finding } from '../src/issue.js';

const finding: Finding = { gate: 'test', file: 'src/a/login.ts', line: 3, message: 'expected 401, got 200' };

describe('the id of a finding', () => {
  test('is eight hexadecimal digits', () => {
    expect(findingId(finding)).toMatch(/^[0-9a-f]{8}$/);
  });

  test.each<[string, Finding]>([
    ['another line', { ...finding, line: 71 }],
    ['other output', { ...finding, detail: 'took 3 s' }],
  ])('is the same with %s', (_, same) => {
    expect(findingId(same)).toBe(findingId(finding));
  });

  test.each<[string, string, string]>([
    ['a duration', 'failed after 12.4 s', 'failed after 900 ms'],
    ['a time', 'at 2026-11-30T22:14:05Z: red', 'at 2026-12-01T01:02:03Z: red'],
    ['a line in the text', 'see login.ts:41:7', 'see login.ts:9:12'],
    ['a line in words', 'Error on line 3', 'Error on line 14'],
    ['a temporary folder', 'cannot read /tmp/giro-x1/c3/a.txt', 'cannot read /tmp/giro-y9/c1/a.txt'],
    ['an object', 'object 0123456789abcdef', 'object fedcba9876543210'],
    ['a break', 'one\ntwo', 'one two'],
  ])('is the same whatever %s', (_, left, right) => {
    expect(findingId({ message: left })).toBe(findingId({ message: right }));
  });

  test.each<[string, Finding]>([
    ['gate', { ...finding, gate: 'lint' }],
    ['file', { ...finding, file: 'src/b/login.ts' }],
    ['rule', { ...finding, rule: 'shrink' }],
    ['test', { ...finding, test: 'login › rejects' }],
    ['message', { ...finding, message: 'expected 401, got 500' }],
    ['folder in the message', { ...finding, message: 'see src/a/x.ts' }],
  ])('is another one for another %s', (_, other) => {
    expect(findingId(other)).not.toBe(findingId(finding));
  });

  test('tells files in two folders of the repository apart', () => {
    expect(findingId({ message: 'see src/a/x.ts' })).not.toBe(findingId({ message: 'see src/b/x.ts' }));
  });
});
