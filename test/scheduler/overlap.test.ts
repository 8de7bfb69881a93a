import fc from 'fast-check';
import picomatch from 'picomatch';
import { describe, expect, test } from 'vitest';
import { Leases, claimOf, globsOverlap, sharedBy } from '../../src/scheduler/overlap.js';

const touching = (...touches: string[]): ReturnType<typeof claimOf> => claimOf({ touches, resources: [] });

describe('globs', () => {
  test.each([
    ['src/auth/**', 'src/auth/login.ts'],
    ['src/auth', 'src/auth/login.ts'],
    ['src/auth/', 'src/auth'],
    ['src/auth/*.ts', 'src/auth/*.css'],
    ['src/**', 'src/a/b/c.ts'],
    ['**/*.md', 'src/a.ts'],
    ['src/{a/x,b}/y', 'src/b/y'],
    ['src/a*/x.ts', 'src/b.ts'],
    ['./src/a', 'src/a/b'],
    ['src/b/../a', 'src/a'],
    ['/src/a', 'src//a'],
    ['!src/a/**', 'docs/b'],
    ['../elsewhere/**', 'src/a'],
    ['src/lit\\[eral/x', 'src/b'],
    ['src/[id]/page.tsx', 'src/list.ts'],
  ])('%s and %s overlap', (left, right) => {
    expect(globsOverlap(left, right)).toBe(true);
    expect(globsOverlap(right, left)).toBe(true);
  });

  test.each([
    ['src/a', 'src/ab'],
    ['src/a/**', 'src/ab/**'],
    ['src/a.ts', 'src/a.tsx'],
    ['src/auth/*.ts', 'test/auth/*.ts'],
    ['src/auth/login.ts', 'src/auth/logout.ts'],
    ['src/A/**', 'src/a/**'],
    ['package.json', 'src/**'],
  ])('%s and %s do not overlap', (left, right) => {
    expect(globsOverlap(left, right)).toBe(false);
    expect(globsOverlap(right, left)).toBe(false);
  });

  test('no file is ever matched by two globs that do not overlap', () => {
    const segment = fc.constantFrom('a', 'b', 'ab', '*', 'a*', '**', '{a,b}', '?', '[ab]', '!(a)');
    const glob = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('/'));
    const file = fc
      .array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 4 })
      .map((parts) => parts.join('/'));
    fc.assert(
      fc.property(glob, glob, file, (left, right, path) => {
        fc.pre(picomatch.isMatch(path, left) && picomatch.isMatch(path, right));
        expect(globsOverlap(left, right)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

describe('leases', () => {
  test('an Issue that names nothing is not held back, and holds nobody back', () => {
    const leases = new Leases();
    leases.take(touching());
    leases.take(touching('**'));
    expect(leases.isFree(touching())).toBe(true);
  });

  test('resources are names, compared exactly', () => {
    const leases = new Leases();
    leases.take(claimOf({ touches: [], resources: ['postgres'] }));
    expect(leases.isFree(claimOf({ touches: [], resources: ['postgres'] }))).toBe(false);
    expect(leases.isFree(claimOf({ touches: [], resources: ['Postgres', 'postgres-2'] }))).toBe(true);
  });

  test('what two claims share is named as the holder names it', () => {
    const holder = claimOf({ touches: ['docs/**', 'src/auth/**'], resources: ['redis'] });
    expect(sharedBy(holder, touching('src/**'))).toBe('src/auth/**');
    expect(sharedBy(holder, claimOf({ touches: [], resources: ['redis'] }))).toBe('redis');
    expect(sharedBy(holder, touching('test/**'))).toBeUndefined();
  });

  test('taking twice and giving back what is not held change nothing', () => {
    const leases = new Leases();
    const mine = touching('src/a/**');
    leases.giveBack(mine);
    leases.take(mine);
    leases.take(mine);
    leases.giveBack(touching('src/a/**'));
    expect(leases.isFree(touching('src/a/b'))).toBe(false);
    leases.giveBack(mine);
    expect(leases.isFree(touching('src/a/b'))).toBe(true);
  });

  test('a claim is free exactly when it shares nothing with any that is held', () => {
    const part = fc.constantFrom('a', 'b', 'c');
    const glob = fc.oneof(
      fc.constant('**'),
      fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/')),
    );
    const claim = fc
      .record({ touches: fc.array(glob, { maxLength: 2 }), resources: fc.subarray(['db', 'port']) })
      .map(claimOf);
    fc.assert(
      fc.property(
        fc.array(claim, { maxLength: 5 }),
        fc.array(claim, { maxLength: 3 }),
        claim,
        (kept, returned, asked) => {
          const leases = new Leases();
          for (const held of [...kept, ...returned]) leases.take(held);
          for (const held of returned) leases.giveBack(held);
          const blockers = kept.filter((held) => sharedBy(held, asked) !== undefined);
          expect(leases.isFree(asked)).toBe(blockers.length === 0);
          const [first = asked] = kept;
          expect(leases.isFreeWithout(asked, first)).toBe(blockers.every((held) => held === first));
        },
      ),
      { numRuns: 500 },
    );
  });
});
