/** What cargo test and cargo nextest print. Pure. */
import { countedWords, evidenceOf, once, sumOf, type Reader } from './reading.js';

/**
 * Reads cargo test: one `test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out` for each target. Only at
 * the start of a line: nextest quotes the line of each failed test, indented.
 */
export const readCargo: Reader = (lines) => {
  let [ran, failed, skipped, isThere, isListing] = [0, 0, 0, false, false];
  let target = '';
  const [failures, passes] = [new Array<string>(), new Array<string>()];
  let listed: string[] = [];
  for (const line of lines) {
    const closing =
      /^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured; (\d+) filtered out/.exec(
        line,
      );
    const pass = /^test (.+?)(?: - should panic)? \.\.\. ok$/.exec(line)?.[1];
    if (closing !== null) {
      const [passed = 0, red = 0, ignored = 0, measured = 0, filtered = 0] = closing.slice(1).map(Number);
      isThere = true;
      ran += passed + red + measured;
      failed += red;
      skipped += ignored + filtered;
      failures.push(...listed);
      [listed, isListing] = [[], false];
    } else if (line === 'failures:') [listed, isListing] = [[], true];
    else if (isListing && /^ {4}\S/.test(line)) listed.push(`${target}${line.trim()}`);
    else if (pass !== undefined) passes.push(`${target}${pass}`);
    else if (/^error: could not compile /.test(line)) failed += 1;
    else target = targetOf(line) ?? target;
  }
  return isThere ? evidenceOf({ runner: 'cargo test', tests: ran, failed, skipped, failures, passes }) : null;
};

/** `Running unittests src/lib.rs (target/debug/deps/cart-cc34d4ae7363b857)`: two crates may both have a `src/lib.rs`. */
function targetOf(line: string): string | undefined {
  const running = /^ +Running (?:unittests )?(\S+) \((?:.*[\\/])?(.+?)-[0-9a-f]{16}(?:\.exe)?\)$/.exec(line);
  if (running !== null) return `${running[2] ?? ''} ${running[1] ?? ''} › `;
  const documents = /^ +Doc-tests (\S+)$/.exec(line);
  return documents === null ? undefined : `${documents[1] ?? ''} › `;
}

/** Reads cargo nextest: `     Summary [   0.250s] 3 tests run: 1 passed, 2 failed, 0 skipped`. */
export const readNextest: Reader = (lines) => {
  let [ran, failed, skipped, isThere] = [0, 0, 0, false];
  const [failures, passes] = [new Array<string>(), new Array<string>()];
  for (const line of lines) {
    const closing = /^ +Summary \[[^\]]*\] +(?:(\d+)\/)?(\d+) tests? run: (.+)$/.exec(line);
    const test =
      /^ +(?:TRY \d+ )?(PASS|FAIL|TIMEOUT|SIG[A-Z]+|ABORT|LEAK) \[[^\]]*\](?: \( *\d+\/\d+\))? +(\S+) +(\S.*)$/.exec(
        line,
      );
    if (closing !== null) {
      const words = countedWords((closing[3] ?? '').replace(/\([^)]*\)/g, ''));
      isThere = true;
      ran += Number(closing[1] ?? closing[2]);
      failed += sumOf(words, 'failed', 'timed out', 'exec failed');
      skipped += sumOf(words, 'skipped');
      // Stopped at the first failure: what did not run is no evidence.
      if (closing[1] !== undefined) skipped += Math.max(0, Number(closing[2]) - Number(closing[1]));
    } else if (test !== null) {
      const name = `${test[2] ?? ''} › ${test[3] ?? ''}`;
      (test[1] === 'PASS' || test[1] === 'LEAK' ? passes : failures).push(name);
    } else if (/^error: no tests to run/.test(line)) isThere = true;
    else if (/^error: could not compile /.test(line)) failed += 1;
  }
  if (!isThere) return null;
  const red = once(failures).filter((name) => !passes.includes(name));
  return evidenceOf({ runner: 'nextest', tests: ran, failed, skipped, failures: red, passes: once(passes) });
};
