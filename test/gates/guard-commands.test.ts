import { expect, test } from 'vitest';
import { programsCalled, scriptsCalled, wordsOf } from '../../src/gates/guard-commands.js';

test.each<[string, readonly string[]]>([
  // What is only looked at is the work, however its words are quoted.
  [`grep -q 'flags(argv); done' README.md`, []],
  [`test "$(wc -l < notes.md)" -gt 3`, []],
  [`grep -q "a b" notes.md && ./check.sh notes.md`, ['./check.sh', 'notes.md']],
  // What is quoted for a shell is a command line of its own.
  [`sh -c "grep -q x notes.md; ./check.sh"`, ['sh', './check.sh']],
  [`bash -c 'cd tools && node "check it.js"'`, ['tools', 'node', 'tools/node']],
])('the words of %s', (command, words) => {
  expect(wordsOf(command)).toEqual(expect.arrayContaining(words.map((word) => word.replace(/^\.\//, ''))));
  if (words.length === 0) expect(wordsOf(command).join(' ')).not.toContain('.md');
});

test('scripts and programs behind quotes are found', () => {
  expect(scriptsCalled(`sh -c "npm run check && npm test"`)).toEqual(expect.arrayContaining(['check', 'test']));
  expect(programsCalled(`sh -c "./check.sh --all"`)).toContain('check.sh');
});

test('a line of many quotes and separators is read in time', () => {
  const started = performance.now();
  wordsOf(`${'"a;b" '.repeat(20_000)}${`'`.repeat(10_001)}`);
  expect(performance.now() - started).toBeLessThan(2_000);
});
