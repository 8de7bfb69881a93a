/** What pytest and unittest print at their end. Pure. */
import { countedWords, evidenceOf, once, sumOf, type Reader } from './reading.js';

const pytestClosing =
  /^(?:=+ )?((?:no tests ran|\d+ [a-z]+)(?:, \d+ [a-z]+)*) in \d+(?:\.\d+)?s(?: \([\d:., a-z]+\))?(?: =+)?$/;

/** Reads pytest: `== 2 failed, 4 passed, 1 skipped in 2.49s ==`, with `-q` without the frame. */
export const readPytest: Reader = (lines) => {
  let [ran, failed, skipped, isThere] = [0, 0, 0, false];
  const [failures, passes] = [new Array<string>(), new Array<string>()];
  for (const line of lines) {
    const closing = pytestClosing.exec(line)?.[1];
    const failure = /^(?:FAILED|ERROR) (\S+::.+)$/.exec(line)?.[1];
    const pass = /^(\S+::.+) (?:PASSED|XFAIL|XPASS)\b/.exec(line)?.[1];
    if (closing !== undefined) {
      const words = countedWords(closing);
      if (words.size === 0 && closing !== 'no tests ran') continue;
      isThere = true;
      const broken = sumOf(words, 'failed', 'error', 'errors');
      failed += broken;
      ran += sumOf(words, 'passed', 'xfailed', 'xpassed') + broken;
      skipped += sumOf(words, 'skipped', 'deselected');
    } else if (failure !== undefined) failures.push(failure.replace(/ - .*$/, ''));
    else if (pass !== undefined) passes.push(pass);
  }
  return isThere
    ? evidenceOf({ runner: 'pytest', tests: ran, failed, skipped, failures: once(failures), passes })
    : null;
};

/** Reads unittest: `Ran 5 tests in 0.001s`, then `OK (skipped=2)` or `FAILED (failures=1, errors=1)`. */
export const readUnittest: Reader = (lines) => {
  let [ran, failed, skipped, isThere] = [0, 0, 0, false];
  const failures: string[] = [];
  for (const line of lines) {
    const closing = /^Ran (\d+) tests? in \d+(?:\.\d+)?s$/.exec(line);
    const result = /^(?:OK|FAILED|NO TESTS RAN)(?: \((.+)\))?$/.exec(line);
    const failure = /^(?:FAIL|ERROR): (\S+ \(.+\))$/.exec(line)?.[1];
    if (closing !== null) {
      isThere = true;
      ran += Number(closing[1]);
    } else if (result !== null && isThere) {
      const counts = new Map(
        [...(result[1] ?? '').matchAll(/([a-z ]+)=(\d+)/g)].map(([, word, number]) => [
          word?.trim() ?? '',
          Number(number),
        ]),
      );
      failed += sumOf(counts, 'failures', 'errors', 'unexpected successes');
      skipped += sumOf(counts, 'skipped');
      ran -= sumOf(counts, 'skipped');
    } else if (failure !== undefined && !failure.includes('_FailedTest')) failures.push(failure);
  }
  return isThere
    ? evidenceOf({ runner: 'unittest', tests: Math.max(0, ran), failed, skipped, failures: once(failures) })
    : null;
};
