/** What `go test` prints, plain, with `-v` and with `-json`. Pure. */
import { z } from 'zod';
import { evidenceOf, type Reader } from './reading.js';

interface Package {
  readonly name: string;
  readonly kind: 'green' | 'red' | 'empty';
}

/**
 * Reads `go test`. Without `-v` a green package is one line that does not say how many tests it has: then the number is
 * unknown, unless no package has any.
 */
export const readGo: Reader = (lines) => {
  let [unnamed, skipped, isVerbose] = [0, 0, false];
  const packages: Package[] = [];
  const [failures, passes] = [new Array<string>(), new Array<string>()];
  let tests: { readonly word: string; readonly name: string }[] = [];
  for (const line of lines) {
    const [, word, test] = /^ *--- (PASS|FAIL|SKIP): (\S+) \(\d/.exec(line) ?? [];
    if (word !== undefined && test !== undefined) tests.push({ word, name: test });
    isVerbose ||= line.startsWith('=== RUN   ');
    const end = packageOf(line);
    if (end === null) continue;
    packages.push(end);
    for (const { word: how, name } of tests) {
      if (how === 'SKIP') skipped += 1;
      else (how === 'PASS' ? passes : failures).push(`${end.name} › ${name}`);
    }
    // A package that does not build, panics or times out names nothing that failed.
    if (end.kind === 'red' && !tests.some(({ word: how }) => how === 'FAIL')) unnamed += 1;
    tests = [];
  }
  if (packages.length === 0) return null;
  const isKnown = isVerbose || packages.every(({ kind }) => kind === 'empty');
  return evidenceOf({
    runner: 'go test',
    tests: isKnown ? passes.length + failures.length : null,
    failed: failures.length + unnamed,
    skipped,
    failures,
    passes,
  });
};

function packageOf(line: string): Package | null {
  const [, word = '', name, rest = ''] = /^(ok {2}|FAIL|\? {3})\t(\S+)(.*)$/.exec(line) ?? [];
  if (name !== undefined) {
    if (word === 'FAIL') return { name, kind: 'red' };
    return { name, kind: word !== 'ok  ' || /\[no tests? (?:files|to run)\]/.test(rest) ? 'empty' : 'green' };
  }
  const uncovered = /^\t(\S+)\t\tcoverage: /.exec(line)?.[1];
  return uncovered === undefined ? null : { name: uncovered, kind: 'empty' };
}

const eventSchema = z.object({
  Action: z.string(),
  Package: z.string().optional(),
  ImportPath: z.string().optional(),
  Test: z.string().optional(),
});

/** Reads `go test -json`: one object a line. */
export const readGoJson: Reader = (lines) => {
  let [skipped, events, unnamed] = [0, 0, 0];
  const [failures, passes] = [new Array<string>(), new Array<string>()];
  const red = new Set<string>();
  for (const line of lines) {
    if (!line.startsWith('{') || !line.includes('"Action":')) continue;
    const event = eventSchema.safeParse(parseJson(line));
    if (!event.success) continue;
    const { Action: action, Package: name = '', Test: test } = event.data;
    if (name === '' && action !== 'build-fail') continue;
    events += 1;
    if (test === undefined) {
      if ((action === 'fail' && !red.has(name)) || action === 'build-fail') unnamed += 1;
    } else if (action === 'pass') passes.push(`${name} › ${test}`);
    else if (action === 'skip') skipped += 1;
    else if (action === 'fail') {
      failures.push(`${name} › ${test}`);
      red.add(name);
    }
  }
  if (events === 0) return null;
  const tests = passes.length + failures.length;
  return evidenceOf({ runner: 'go test', tests, failed: failures.length + unnamed, skipped, failures, passes });
};

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
