import { expect, test } from 'vitest';
import { bystanders } from './protections.js';
import { filesOf, judgeMutation, type RanTest } from './verdict.js';

const entry = { named: ['a.test.ts > guards > sees'], area: ['a.test.ts > guards', 'b.test.ts'] };

function ran(test: string, failed = true): RanTest {
  return { test, failed };
}

test('a protection is proved when every named test fails, and nothing outside of its area does', () => {
  const tests = [
    ran('a.test.ts > guards > sees one'),
    ran('a.test.ts > guards > sees two'),
    ran('a.test.ts > guards > tells'),
    ran('b.test.ts > anything'),
    ran('a.test.ts > other', false),
  ];
  expect(judgeMutation(entry, tests)).toEqual({ named: 2, noticed: 2, further: 2, problems: [] });
});

test.each<[string, readonly RanTest[], string]>([
  [
    'one row of a table does not notice',
    [ran('a.test.ts > guards > sees 1'), ran('a.test.ts > guards > sees 2', false)],
    'passes without it: a.test.ts > guards > sees 2',
  ],
  [
    'a test fails elsewhere',
    [ran('a.test.ts > guards > sees'), ran('a.test.ts > other')],
    'fails outside of its area: a.test.ts > other',
  ],
  ['a named test is not there any more', [ran('b.test.ts > x')], 'there is no such test: a.test.ts > guards > sees'],
])('it is not when %s', (_what, tests, problem) => {
  expect(judgeMutation(entry, tests).problems).toEqual([problem]);
});

test('naming no test proves nothing', () => {
  expect(judgeMutation({ named: [], area: [] }, []).problems).toEqual(['no test is named']);
});

test('the files of an entry are run once each, with the bystanders', () => {
  expect(filesOf(entry)).toEqual(['a.test.ts', 'b.test.ts', ...bystanders]);
});
