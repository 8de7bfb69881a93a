/** Tells whether patterns of an Issue or of giro.toml name a file. */
import picomatch from 'picomatch';

/** Whether a pattern names something: a folder, a file, an ending; `**` alone does not. */
export function namesSomething(pattern: string): boolean {
  return /[\p{L}\p{N}]/u.test(pattern);
}

/** Makes the test whether one of some patterns names a path; one without wildcards also names everything below it. */
export function matcher(patterns: readonly string[]): (path: string) => boolean {
  const tests = patterns.map(matcherOf);
  return (path) => tests.some((test) => test(path));
}

function matcherOf(pattern: string): (path: string) => boolean {
  const plain = pattern.replace(/^\.\//, '').replace(/\/+$/, '');
  const globs = [plain, `${plain}/**`];
  // A folder such as `app/[id]` is more often meant than one of two letters.
  const literal = plain.replace(/[[\]]/g, '\\$&');
  const test = picomatch([...globs, ...(literal === plain ? [] : [literal, `${literal}/**`])], { dot: true });
  return (path) => path === plain || path.startsWith(`${plain}/`) || test(path);
}
