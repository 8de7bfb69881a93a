import { describe, expect, test } from 'vitest';
import { aloneCommand } from '../../src/gates/alone.js';
import type { Evidence } from '../../src/issue.js';

function red(runner: string, ...failures: readonly string[]): Evidence {
  return { runner, tests: 5, failed: failures.length, skipped: 0, failures };
}

describe('failed tests run alone', () => {
  test.each([
    [
      'npx vitest run',
      red('vitest', 'a.test.ts > cart > it (really) adds'),
      `npx vitest run -t '^(cart it \\(really\\) adds)$'`,
    ],
    ['jest --ci', red('jest', 'a.js › cart › adds', 'b.js › x'), `jest --ci -t '^(cart adds|x)$'`],
    ['npx mocha', red('mocha', `cart › it's`), `npx mocha -g '^(cart it'\\''s)$'`],
    ['node --test test/', red('node:test', 'a.mjs › adds'), `node --test --test-name-pattern='^(adds)$' test/`],
    ['python -m pytest -q', red('pytest', 'a.py::test_x[1]'), `python -m pytest -q 'a.py::test_x[1]'`],
    ['go test ./...', red('go test', 'e.com/a › TestX', 'e.com/a › TestX/sub'), `go test -run '^(TestX)$' ./...`],
    ['cargo test --offline', red('cargo test', 'cart src/lib.rs › t::x'), `cargo test --offline -- --exact 't::x'`],
  ])('of %j', (run, evidence, command) => {
    expect(aloneCommand(run, evidence)).toBe(command);
  });

  test.each([
    ['a script that calls it', 'npm test', red('vitest', 'a > b')],
    ['more than one command', 'vitest run && eslint .', red('vitest', 'a > b')],
    ['a command that picks some already', 'vitest run -t cart', red('vitest', 'a > b')],
    ['paths that would run besides', 'pytest tests', red('pytest', 'a.py::b')],
    ['another runner than was read', 'vitest run', red('tap', 'a')],
    ['failures without a name', 'vitest run', { ...red('vitest', 'a > b'), failed: 2 }],
    ['names that are not unlike', 'vitest run', red('vitest', 'a > b', 'a > b (2)')],
    ['nothing that can be read', 'vitest run', null],
  ])('not for %s', (_name, run, evidence) => {
    expect(aloneCommand(run, evidence)).toBeNull();
  });
});
