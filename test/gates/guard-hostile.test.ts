/** Texts that are made to be slow to read: what is quadratic anywhere takes minutes here, and runs into the time limit. */
import { expect, test } from 'vitest';
import { guard } from './guarded.js';

const often = (text: string, times = 20_000): string => text.repeat(times);

const texts: Readonly<Record<string, readonly [path: string, text: string]>> = {
  'quotes and comments': ['test/a.test.js', often('\'"`/*[{(')],
  'regular expressions': ['test/a.test.js', often('=/[')],
  'tables that are never closed': ['test/a.test.js', often('it.each([')],
  'types that are never closed': ['test/a.test.js', often('expect<')],
  'many tests': ['test/a.test.js', often("it.skip('x', f);\nexpect(a)\n")],
  'blanks behind words': ['test/a.test.js', often('it '.padEnd(200), 1000)],
  'decorators of Python': ['test/test_a.py', often('parametrize(')],
  'strings of Python': ['test/test_a.py', often('"""\'\'\'')],
  'functions of Go': ['a_test.go', often('func (')],
  'braces of Go': ['a_test.go', often('\n{')],
  'attributes of Rust': ['src/a.rs', often('#[cfg(')],
  'raw strings of Rust': ['src/a.rs', often('r#"')],
  'annotations of Java': ['src/test/java/ATest.java', often('@CsvSource(value = {')],
  'blanks of Ruby': ['spec/a_spec.rb', often(' ', 400_000)],
  'one long word': ['package.json', often('lines', 50_000)],
  'blanks behind a bar': ['Makefile', `complexity${often(' ', 250_000)}`],
  'bars without end': ['eslint.config.js', often('lines: [')],
  'commas without end': ['package.json', often(',  ')],
  'slack tokens': ['a', `xoxb-${often('1-')}`],
  'heads of keys': ['a', often('-----BEGIN RSA PRIVATE KEY-----\n')],
  'many keys': [
    'a',
    Array.from(
      { length: 20_000 },
      (_, at) => `AKIA${at.toString(2).padStart(16, 'QWERTZUP').replaceAll('0', 'X').replaceAll('1', 'Y')}`,
    ).join('\n'),
  ],
  'half conflicts': ['a', often('<<<<<<< a\n')],
  'deep sections': ['pyproject.toml', often('[tool.pytest')],
  targets: ['Makefile', often('a: a\n')],
};

test.each(Object.entries(texts))('%s', { timeout: 30_000 }, async (_, [path, text]) => {
  const findings = await guard(
    { [path]: 'x\n' },
    { [path]: text },
    { gates: ['npm test', 'make a'], limits: { lines: 100_000 } },
  );
  expect(findings.length).toBeLessThan(100);
});
