import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isNamed, matchingLine, readEvidence, whyVacuous } from '../../src/gates/evidence.js';
import { readJunit } from '../../src/gates/read-junit.js';
import type { Evidence } from '../../src/issue.js';

const folder = join(import.meta.dirname, 'fixtures');

async function read(name: string): Promise<Evidence | null> {
  const text = await readFile(join(folder, name), 'utf8');
  return name.endsWith('.xml') ? readJunit(text) : readEvidence(text, true);
}

const cart = ['cart › removes', 'cart › with a coupon › never goes below 0'];
const vitest = ['mixed.test.js > cart > removes', 'mixed.test.js > cart > with a coupon > never goes below 0'];
const jest = ['mixed.test.js › cart › removes', 'mixed.test.js › cart › with a coupon › never goes below 0'];
const node = ['mixed.test.mjs › removes', 'mixed.test.mjs › never goes below 0'];
const pytest = ['test_removes', 'test_each[2]', 'TestCart::test_error'].map((name) => `test_mixed.py::${name}`);
const go = ['example.com/cart › TestRemoves', 'example.com/cart › TestRemoves/twice'];
const cargo = ['cart src/lib.rs › tests::removes'];

/** What each captured output says: runner, tests that ran, failed, skipped, and who failed. */
const captured: Readonly<
  Record<string, readonly [string, number | null, number, number, (readonly string[])?] | null>
> = {
  'cargo-color.txt': ['cargo test', 2, 1, 1, cargo],
  'cargo-filtered.txt': ['cargo test', 0, 0, 5],
  'cargo-mixed.txt': ['cargo test', 4, 1, 1, cargo],
  'cargo-nobuild.txt': null,
  'cargo-pass.txt': ['cargo test', 1, 0, 0],
  'cargo-quiet.txt': ['cargo test', 4, 1, 1, ['tests::removes']],
  'go-json-none.txt': ['go test', 0, 0, 0],
  'go-json.txt': ['go test', 2, 1, 1, ['example.com/cart › TestRemoves']],
  'go-mixed.txt': ['go test', null, 2, 0, go],
  'go-nobuild.txt': ['go test', null, 1, 0],
  'go-none.txt': ['go test', 0, 0, 0],
  'go-pass.txt': ['go test', null, 0, 0],
  'go-verbose.txt': ['go test', 4, 2, 1, go],
  'jest-broken.txt': ['jest', 2, 1, 0],
  'jest-color.txt': ['jest', 3, 2, 2, jest],
  'jest-filtered.txt': ['jest', 0, 0, 2],
  'jest-mixed.txt': ['jest', 5, 2, 2, jest],
  'jest-none.txt': ['jest', 0, 0, 0],
  'jest-pass.txt': ['jest', 2, 0, 0],
  'jest-skip.txt': ['jest', 0, 0, 2],
  'jest-verbose.txt': ['jest', 5, 2, 2, jest],
  'mocha-color.txt': ['mocha', 3, 2, 2, cart],
  'mocha-dot.txt': ['mocha', 3, 2, 2, cart],
  'mocha-filtered.txt': ['mocha', 0, 0, 0],
  'mocha-hook.txt': ['mocha', 1, 1, 0],
  'mocha-mixed.txt': ['mocha', 5, 2, 2, cart],
  'mocha-pass.txt': ['mocha', 2, 0, 0],
  'mocha-skip.txt': ['mocha', 0, 0, 2],
  'mocha-tap.txt': ['tap', 3, 2, 2, ['cart removes', 'cart with a coupon never goes below 0']],
  'mocha-xunit.xml': ['junit', 3, 2, 2, ['cart › removes', 'cart with a coupon › never goes below 0']],
  'nextest-mixed.txt': ['nextest', 3, 1, 1, ['cart › tests::removes']],
  'nextest-none.txt': ['nextest', 0, 0, 4],
  'node-broken.txt': ['node:test', 1, 1, 0],
  'node-color.txt': ['node:test', 3, 2, 2, node],
  'node-filtered.txt': ['node:test', 0, 0, 2],
  'node-junit.xml': ['junit', 3, 2, 2, cart],
  'node-mixed-spec.txt': ['node:test', 5, 2, 2, node],
  'node-mixed-tap.txt': ['node:test', 5, 2, 2, cart],
  'node-none.txt': ['node:test', 0, 0, 0],
  'node-pass-spec.txt': ['node:test', 2, 0, 0],
  'node-pass-tap.txt': ['node:test', 2, 0, 0],
  'node-skip-tap.txt': ['node:test', 0, 0, 2],
  'node-skip.txt': ['node:test', 0, 0, 2],
  'pytest-broken.txt': ['pytest', 1, 1, 0],
  'pytest-color.txt': ['pytest', 7, 3, 1, pytest],
  'pytest-filtered.txt': ['pytest', 0, 0, 2],
  'pytest-junit.xml': [
    'junit',
    8,
    3,
    2,
    ['test_mixed › test_removes', 'test_mixed › test_each[2]', 'test_mixed.TestCart › test_error'],
  ],
  'pytest-mixed.txt': ['pytest', 9, 3, 1, pytest],
  'pytest-none.txt': ['pytest', 0, 0, 0],
  'pytest-pass.txt': ['pytest', 2, 0, 0],
  'pytest-qq-pass.txt': null,
  'pytest-quiet-pass.txt': ['pytest', 2, 0, 0],
  'pytest-quiet.txt': ['pytest', 7, 3, 1, pytest],
  'pytest-skip.txt': ['pytest', 0, 0, 1],
  'pytest-verbose.txt': ['pytest', 9, 3, 1, pytest],
  'surefire.xml': ['junit', 2, 1, 1, ['com.example.CartTest › removes']],
  'unittest-mixed.txt': ['unittest', 2, 1, 1, ['test_removes (test_unit.Cart.test_removes)']],
  'unittest-pass.txt': ['unittest', 1, 0, 0],
  'unittest-skip.txt': ['unittest', 0, 0, 1],
  'vitest-broken.txt': ['vitest', 2, 1, 0],
  'vitest-color.txt': ['vitest', 3, 2, 2, vitest],
  'vitest-filtered.txt': ['vitest', 0, 0, 2],
  'vitest-junit.xml': ['junit', 5, 2, 2, vitest.map((name) => name.replace(' > ', ' › '))],
  'vitest-mixed.txt': ['vitest', 5, 2, 2, vitest],
  'vitest-none.txt': ['vitest', 0, 0, 0],
  'vitest-pass.txt': ['vitest', 2, 0, 0],
  'vitest-skip.txt': ['vitest', 0, 0, 2],
  'vitest-tap.txt': ['tap', 3, 2, 2, jest],
  'vitest-tapflat.txt': ['tap', 3, 2, 2, vitest],
  'vitest-unhandled.txt': ['vitest', 2, 1, 0],
  'vitest-verbose.txt': ['vitest', 3, 2, 2, vitest],
};

describe('what the runners print', () => {
  test('every captured output has a line here', async () => {
    expect((await readdir(folder)).sort()).toEqual(Object.keys(captured).sort());
  });

  test.each(Object.entries(captured))('%s is read', async (name, expected) => {
    const found = await read(name);
    if (expected === null) {
      expect(found).toBeNull();
      return;
    }
    const [runner, tests, failed, skipped, failures = []] = expected;
    expect(found).toMatchObject({ runner, tests, failed, skipped, failures });
  });

  test('names every pass where the runner does, and none where one is missing', async () => {
    expect((await read('cargo-mixed.txt'))?.passes).toEqual([
      'cart src/lib.rs › tests::adds',
      'whole tests/whole.rs › whole',
      'cart › src/lib.rs - (line 1)',
    ]);
    expect((await read('node-mixed-tap.txt'))?.passes).toEqual(['cart › adds', 'one', 'two']);
    expect((await read('vitest-verbose.txt'))?.passes).toEqual(['mixed.test.js > cart > adds']);
    expect((await read('pytest-verbose.txt'))?.passes).toContain('test_pass.py::test_two');
    expect((await read('vitest-mixed.txt'))?.passes).toBeUndefined();
    expect((await read('cargo-quiet.txt'))?.passes).toBeUndefined();
  });

  test('failures can be compared only when each is known by name', async () => {
    expect(isNamed(await read('vitest-mixed.txt'))).toBe(true);
    for (const name of ['vitest-broken.txt', 'mocha-hook.txt', 'go-nobuild.txt', 'node-broken.txt', 'vitest-pass.txt'])
      expect(isNamed(await read(name)), name).toBe(false);
  });

  test('several runners, and several runs of one, are added up', async () => {
    const texts = ['vitest-mixed.txt', 'node-mixed-spec.txt', 'vitest-pass.txt'];
    const output = (await Promise.all(texts.map((name) => readFile(join(folder, name), 'utf8')))).join('\n');
    expect(readEvidence(output, true)).toMatchObject({
      runner: 'vitest + node:test',
      tests: 12,
      failed: 4,
      failures: [...vitest, ...node],
    });
  });

  test.each([
    ['turbo', 'web:test: ', 'api:test: ', 'web:test', 'api:test'],
    ['lerna', '@scope/web: ', 'api: ', '@scope/web', 'api'],
    ['pnpm', 'packages/web test: ', 'packages/api test: ', 'packages/web test', 'packages/api test'],
    ['yarn', '[@scope/web]: ', '[api]: ', '[@scope/web]', '[api]'],
    ['concurrently', '[web] ', '[0] ', '[web]', '[0]'],
    ['docker compose', 'web-1  | ', 'api-1  | ', 'web-1', 'api-1'],
  ])('prefixed as by %s, the lines of each package are read apart', async (_name, one, other, web, api) => {
    const lines = (await readFile(join(folder, 'vitest-mixed.txt'), 'utf8')).split('\n');
    const mixed = lines.flatMap((line) => [`\u001b[35m${one}\u001b[39m${line}`, `${other}${line}`]).join('\n');
    expect(readEvidence(mixed, true)).toMatchObject({ runner: 'vitest', tests: 10, failed: 4, skipped: 4 });
    expect(new Set(readEvidence(mixed, true)?.failures)).toEqual(
      new Set([web, api].flatMap((name) => vitest.map((failure) => `${name} › ${failure}`))),
    );
    const none = (await readFile(join(folder, 'jest-filtered.txt'), 'utf8')).replace(/^/gm, one);
    expect(whyVacuous(readEvidence(none, true), { minTests: null })).toMatch(/skipped or filtered out/);
  });

  test.each([
    ['vitest-mixed.txt', 'ERROR: Coverage for lines (50%) does not meet global threshold (90%)'],
    ['mocha-mixed.txt', 'ERROR: Coverage for branches (50%) does not meet global threshold (90%)'],
    ['jest-mixed.txt', 'Jest: Coverage for branches (50%) does not meet "global" threshold (90%)'],
    ['jest-mixed.txt', 'Jest: "global" coverage threshold for branches (90%) not met: 50%'],
    ['pytest-mixed.txt', 'FAIL Required test coverage of 90% not reached. Total coverage: 50.00%'],
    ['node-mixed-tap.txt', 'ERROR: incomplete coverage'],
  ])('after %s, coverage that is too low is a failure without a name: %s', async (name, line) => {
    const text = await readFile(join(folder, name), 'utf8');
    expect(isNamed(readEvidence(text, true))).toBe(true);
    expect(isNamed(readEvidence(`${text}\n${line}\n`, true))).toBe(false);
  });

  test('a file that node:test of Node 20 could not load is no test', () => {
    const tap = 'TAP version 13\nnot ok 1 - t/bad.test.js\nok 2 - adds\nnot ok 3 - reads a.js\n1..3\n';
    expect(readEvidence(tap, true)).toMatchObject({ failed: 2, failures: ['reads a.js'] });
    const spec =
      'ℹ tests 1\nℹ pass 0\nℹ fail 1\n\n✖ failing tests:\n\ntest at t/bad.test.js:1:1\n✖ t/bad.test.js (3.1ms)\n';
    expect(readEvidence(spec, true)).toMatchObject({ failed: 1, failures: [] });
  });

  test('tests of one name stay two', () => {
    const tap = 'TAP version 13\nnot ok 1 - a\nnot ok 2 - a\n1..2\n';
    expect(readEvidence(tap, true)?.failures).toEqual(['a', 'a (2)']);
  });

  test.each(['', 'all good\n', 'Tests passed: 5\n', 'ok\n', '3 passing grades\n', 'Summary: 0 tests\n'])(
    'other output says nothing: %j',
    (output) => {
      expect(readEvidence(output, true)).toBeNull();
    },
  );

  test('the end of an output does not say that nothing ran before it', async () => {
    const text = await readFile(join(folder, 'cargo-filtered.txt'), 'utf8');
    expect(readEvidence(text, false)).toBeNull();
    expect(readEvidence('TAP version 13\nok 1 - a\n1..1\n', false)).toBeNull();
  });
});

describe('a JUnit report', () => {
  test.each([
    ['cut off', '<testsuite><testcase name="a"/>'],
    ['something else', '<html><body/></html>'],
    ['empty', ''],
    ['closed in the wrong order', '<testsuite><testcase name="a"></testsuite></testcase>'],
    ['with a document type', '<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>'],
    ['with an attribute without quotes', '<testsuite name=a/>'],
  ])('that is %s is none', (_name, xml) => {
    expect(readJunit(xml)).toBeNull();
  });

  test('may be empty, and its entities are read', () => {
    expect(readJunit('<testsuites/>')).toMatchObject({ tests: 0 });
    const xml = `<testsuite><testcase classname="a&lt;b" name='c&#62;&#x64;&nbsp;'/></testsuite>`;
    expect(readJunit(xml)?.passes).toEqual(['a<b › c>d&nbsp;']);
  });
});

describe('a green run', () => {
  const rules = { minTests: null };
  const some: Evidence = { runner: 'jest', tests: 2, failed: 0, skipped: 0, failures: [] };

  test('without a test is vacuous, and says why', () => {
    expect(whyVacuous(some, rules)).toBeNull();
    expect(whyVacuous(null, rules)).toBeNull();
    expect(whyVacuous({ ...some, tests: null }, rules)).toBeNull();
    expect(whyVacuous({ ...some, tests: 0 }, rules)).toBe('passed without a test: jest ran none');
    expect(whyVacuous({ ...some, tests: 0, skipped: 2 }, rules)).toBe(
      'passed without a test: all its 2 tests were skipped or filtered out (jest)',
    );
  });

  test('needs as many tests as min-tests says, known for sure', () => {
    expect(whyVacuous(some, { minTests: 2 })).toBeNull();
    expect(whyVacuous({ ...some, skipped: 7 }, { minTests: 3 })).toBe(
      'passed with too few tests: 2 ran (min-tests is 3), 7 were skipped or filtered out',
    );
    expect(whyVacuous(null, { minTests: 1 })).toContain('does not say how many tests ran');
    expect(whyVacuous({ ...some, tests: null }, { minTests: 1 })).toContain('jest does not say');
  });
});

test('a pattern is looked for in each line, without colours', () => {
  expect(matchingLine('a\n\u001b[32m12 scenarios\u001b[0m\n', '^\\d+ scenarios$')).toBe('12 scenarios');
  expect(matchingLine('1\n2\n', '1.2')).toBeNull();
});
