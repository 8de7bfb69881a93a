/** How failed tests are run alone, where a gate is nothing but one call of a runner that can. Pure. */
import type { Evidence } from '../issue.js';
import { isNamed } from './evidence.js';

/** More failed tests than this are not picked out: the whole gate is as quick. */
const mostTests = 50;

/** Gives the command that runs the failed tests of a gate alone; `null`: it cannot be told, so the whole gate runs. */
export function aloneCommand(run: string, evidence: Evidence | null): string | null {
  if (!isNamed(evidence) || evidence.failures.length > mostTests) return null;
  const words = plainWords(run);
  if (words === null || evidence.failures.some((name) => / \(\d+\)$/.test(name))) return null;
  const [runner, rest] = runnerOf(words);
  if (runner === null) return null;
  const build = builders[runner];
  if (runner !== evidence.runner) return null;
  return build(rest, evidence.failures);
}

type RunnerName = 'vitest' | 'jest' | 'mocha' | 'pytest' | 'go test' | 'cargo test' | 'node:test';

/** The words of a command without anything that a shell would act upon; `null`: there is more to it. */
function plainWords(run: string): readonly string[] | null {
  const words = run.trim().split(/ +/);
  return words.every((word) => /^[\w./@:=,+-]+$/.test(word)) ? words : null;
}

/** The runner that a command calls, and how the command begins and goes on. */
function runnerOf(words: readonly string[]): readonly [RunnerName | null, readonly string[]] {
  const at = words[0] === 'npx' || (words[0] === 'pnpm' && words[1] === 'exec') ? (words[0] === 'npx' ? 1 : 2) : 0;
  const name = (words[at] ?? '').replace(/^(?:\.\/)?node_modules\/\.bin\//, '');
  if (name === 'vitest' || name === 'jest' || name === 'mocha' || name === 'pytest') return [name, words];
  if (/^python3?$/.test(name) && words[at + 1] === '-m' && words[at + 2] === 'pytest') return ['pytest', words];
  if (at === 0 && name === 'go' && words[1] === 'test') return ['go test', words];
  if (at === 0 && name === 'cargo' && words[1] === 'test') return ['cargo test', words];
  if (at === 0 && name === 'node' && words[1] === '--test') return ['node:test', words];
  return [null, words];
}

/** Each knows how its runner picks tests by name, and gives up where the command picks some already. */
const builders: Readonly<Record<RunnerName, (words: readonly string[], names: readonly string[]) => string | null>> = {
  vitest: (words, names) => {
    const titles = names.map((name) => name.split(' > ').slice(1).join(' '));
    return hasOption(words, '-t', '--testNamePattern') ? null : `${words.join(' ')} -t ${anyOf(titles)}`;
  },
  jest: (words, names) => {
    const titles = names.map((name) => name.split(' › ').slice(1).join(' '));
    return hasOption(words, '-t', '--testNamePattern') ? null : `${words.join(' ')} -t ${anyOf(titles)}`;
  },
  mocha: (words, names) => {
    const titles = names.map((name) => name.replaceAll(' › ', ' '));
    return hasOption(words, '-g', '--grep', '-f', '--fgrep') ? null : `${words.join(' ')} -g ${anyOf(titles)}`;
  },
  'node:test': (words, names) => {
    if (hasOption(words, '--test-name-pattern', '--test-only')) return null;
    const titles = names.map(lastPart);
    return [...words.slice(0, 2), `--test-name-pattern=${anyOf(titles)}`, ...words.slice(2)].join(' ');
  },
  pytest: (words, names) => {
    // Paths in the command would be run besides.
    const options = words.slice(words.findIndex((word) => word.endsWith('pytest')) + 1);
    return options.every((word) => /^-(?:[qvsxl]+|-[\w-]+=\S+)$/.test(word))
      ? `${words.join(' ')} ${names.map(quoted).join(' ')}`
      : null;
  },
  'go test': (words, names) => {
    if (hasOption(words, '-run', '-skip')) return null;
    const tests = [...new Set(names.map((name) => (name.split(' › ')[1] ?? '').replace(/\/.*$/, '')))];
    return [...words.slice(0, 2), `-run ${quoted(`^(${tests.map(escaped).join('|')})$`)}`, ...words.slice(2)].join(' ');
  },
  'cargo test': (words, names) => {
    if (words.slice(2).some((word) => word === '--' || !word.startsWith('-'))) return null;
    return `${words.join(' ')} -- --exact ${names.map((name) => quoted(lastPart(name))).join(' ')}`;
  },
};

function lastPart(name: string): string {
  return name.split(' › ').at(-1) ?? name;
}

function hasOption(words: readonly string[], ...options: readonly string[]): boolean {
  return words.some((word) => options.some((option) => word === option || word.startsWith(`${option}=`)));
}

/** A pattern that matches these titles and no longer ones. */
function anyOf(titles: readonly string[]): string {
  return quoted(`^(${titles.map(escaped).join('|')})$`);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
