import { describe, expect, test } from 'vitest';
import { findIssue, parseTarget } from '../../src/cli/target.js';
import { issueId } from '../store/rig.js';

const top = '/home/me/repo';

function parse(text: string, cwd = top): unknown {
  const target = parseTarget(text, { cwd, top });
  return target.ok ? target.value : target.failure;
}

describe('a target', () => {
  test.each([
    ['auth', top],
    ['auth/', top],
    ['auth/SPEC.md', top],
    ['docs/specs/auth', top],
    ['docs/specs/auth/', top],
    ['./docs/specs/auth/SPEC.md', top],
    ['/home/me/repo/docs/specs/auth', '/'],
    ['docs/specs/auth', `${top}/src`],
    ['auth', `${top}/docs/specs`],
    ['auth', `${top}/docs/specs/other/issues`],
    ['auth', `${top}/docs/specs/auth`],
    ['.', `${top}/docs/specs/auth`],
    ['..', `${top}/docs/specs/auth/issues`],
    ['SPEC.md', `${top}/docs/specs/auth`],
    ['docs/specs/auth/issues/', top],
    ['.', `${top}/docs/specs/auth/issues`],
  ])('%s in %s is the Spec auth', (text, cwd) => {
    expect(parse(text, cwd)).toEqual({ kind: 'spec', spec: 'auth' });
  });

  test.each([
    ['auth/03', '03', top],
    ['auth/3', '3', top],
    ['auth/03-login', '03-login', top],
    ['auth/03-login.md', '03-login', top],
    ['auth/issues/03-login.md', '03-login', top],
    ['docs/specs/auth/issues/03-login.md', '03-login', top],
    ['/home/me/repo/docs/specs/auth/issues/03-login.md', '03-login', '/'],
    ['issues/03-login.md', '03-login', `${top}/docs/specs/auth`],
    ['03-login.md', '03-login', `${top}/docs/specs/auth/issues`],
    ['auth/03', '03', `${top}/docs/specs/auth`],
  ])('%s is the Issue %s', (text, issue, cwd) => {
    expect(parse(text, cwd)).toEqual({ kind: 'issue', spec: 'auth', issue });
  });

  test.each(['docs/specs', './docs/specs/', '/home/me/repo/docs/specs'])('%s is the backlog', (text) => {
    expect(parse(text)).toEqual({ kind: 'backlog' });
    expect(parse('.', `${top}/docs/specs`)).toEqual({ kind: 'backlog' });
  });

  test.each([
    ['make it pass on Node 24', 'a goal in words'],
    ['goal:tidy', 'a goal in words'],
    ['github:owner/repo', 'a GitHub repository'],
    ['Auth', 'cannot be the name of a Spec'],
    ['a..b', 'cannot be the name of a Spec'],
    ['-x', 'cannot be the name of a Spec'],
    ['docs/specs/ünï', 'cannot be the name of a Spec'],
    ['auth/notes.txt', 'is neither a Spec nor an Issue'],
    ['auth/login', 'is neither a Spec nor an Issue'],
    ['auth/03/04', 'is neither a Spec nor an Issue'],
    ['auth/03-', 'is neither a Spec nor an Issue'],
    ['auth/99999999999999999999', 'is neither a Spec nor an Issue'],
    ['docs/specs-old/auth', 'is neither a Spec nor an Issue'],
    ['/elsewhere/docs/specs/auth', 'is not below docs/specs here'],
    ['../auth', 'is not below docs/specs here'],
    ['.', 'is not below docs/specs here'],
    ['', 'the target is empty'],
    ['/', 'is not below docs/specs here'],
  ])('%j is refused: %s', (text, message) => {
    expect(parse(text)).toMatchObject({ kind: 'usage', message: expect.stringContaining(message) as unknown });
  });
});

describe('the Issue that was typed', () => {
  const ids = ['01-store', '02-log-in', '010-late'].map(issueId);

  test.each([
    ['1', '01-store'],
    ['001', '01-store'],
    ['1-store', '01-store'],
    ['02-log-in', '02-log-in'],
    ['10', '010-late'],
    ['02-in', undefined],
    ['01-log-in', undefined],
    ['3', undefined],
  ])('%s is %s', (typed, found) => {
    expect(findIssue(ids, typed)).toBe(found);
  });
});
