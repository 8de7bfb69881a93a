/** What shell commands name: files, scripts of manifests, targets of Makefiles. Read as words, never run. */
import { posix } from 'node:path';

/**
 * Words of a command that may be paths, from the root of the repository, also behind a `cd`. What a command only looks at
 * (`grep -q done notes.md`, `eslint src/app.js`) is the work and not the exam: of such only configuration counts.
 */
export function wordsOf(command: string): readonly string[] {
  const words = pieces(command)
    .flatMap((piece) => (looksOnly(piece) ? piece.filter((_, at) => isConfiguration(piece, at)) : piece))
    .flatMap((word) => word.split(/[<>=,]+/))
    .filter((word) => word !== '');
  const folders = words.filter((_, at) => words[at - 1] === 'cd').map(clean);
  const paths = words.filter((word) => !word.startsWith('-')).map(clean);
  return [...new Set([...paths, ...folders.flatMap((folder) => paths.map((path) => clean(`${folder}/${path}`)))])];
}

function clean(path: string): string {
  const normal = posix.normalize(path);
  return normal.replace(/^\.\//, '').replace(/\/$/, '');
}

const lookers =
  /^(?:test|\[{1,2}|[ef]?grep|rg|ls|stat|eslint|oxlint|biome|prettier|stylelint|tsc|ruff|black|isort|flake8|pylint|mypy|pyright|rubocop|shellcheck|shfmt|markdownlint|yamllint|gofmt|golangci-lint|rustfmt|clang-format)$/;
const configurationOption =
  /^(?:-c|-p|--(?:config|config-file|config-path|rcfile|project|settings|ignore-path|rulesdir)(?:=.*)?)$/;

function looksOnly([program = '', ...words]: readonly string[]): boolean {
  return lookers.test(posix.basename(program)) || (program === 'node' && words.includes('--check'));
}

function isConfiguration(piece: readonly string[], at: number): boolean {
  return configurationOption.test(piece[at] ?? '') || configurationOption.test(piece[at - 1] ?? '');
}

const packageRunners = new Set(['npm', 'pnpm', 'yarn', 'bun', 'deno', 'composer']);
const runWords = new Set(['run', 'run-script', 'task', 'exec', 'workspace', 'workspaces']);
const startWords: Readonly<Record<string, string>> = { t: 'test', tst: 'test' };

/** Names that a command may mean by a script of a package manifest, such as `test` in `npm test`. */
export function scriptsCalled(command: string): readonly string[] {
  return pieces(command).flatMap((words) => {
    const at = words.findIndex((word) => packageRunners.has(posix.basename(word)));
    if (at < 0) return runAll(words);
    // Options with values cannot be told from scripts: more names are looked at than are meant.
    const rest = words.slice(at + 1).filter((word) => !word.startsWith('-') && !runWords.has(word));
    return rest.map((word) => startWords[word] ?? word);
  });
}

/** `run-s lint test`, `npm-run-all lint test`, `turbo run test`, `nx test`, `lerna run test`, `concurrently npm:test`. */
function runAll(words: readonly string[]): readonly string[] {
  const at = words.findIndex((word) => /^(?:run-[sp]|npm-run-all2?|turbo|nx|lerna|wireit|wsrun)$/.test(word));
  const named = words.filter((word) => word.startsWith('npm:')).map((word) => word.slice(4));
  return [...(at < 0 ? [] : words.slice(at + 1).filter((word) => !word.startsWith('-') && word !== 'run')), ...named];
}

/** Targets that a command makes, by the program that makes them; a call without a target makes the first one. */
export function targetsCalled(
  command: string,
): readonly { readonly program: 'make' | 'just'; readonly target: string }[] {
  return pieces(command).flatMap((words) => {
    const at = words.findIndex((word) => /^(?:g?make|just)$/.test(word));
    const program = words[at] === 'just' ? ('just' as const) : ('make' as const);
    if (at < 0) return [];
    const targets = words.slice(at + 1).filter((word) => /^[\w.][\w./-]*$/.test(word));
    return (targets.length === 0 ? [''] : targets).map((target) => ({ program, target }));
  });
}

/** Files that a command runs as programs, directly or by an interpreter. */
export function programsCalled(command: string): readonly string[] {
  return pieces(command).flatMap((words) => {
    const [first = ''] = words;
    const file = interpreters.has(first)
      ? words.slice(1).find((word) => !word.startsWith('-') && word !== 'run')
      : first;
    return file !== undefined && (file.includes('/') || /\.\w+$/.test(file)) ? [clean(file)] : [];
  });
}

const interpreters = new Set([
  'node',
  'tsx',
  'ts-node',
  'deno',
  'bun',
  'sh',
  'bash',
  'zsh',
  'python',
  'python3',
  'ruby',
  'perl',
  'php',
  'source',
  '.',
]);

/**
 * The simple commands of a command line, as words without quotes and leading assignments. What stands in quotes is one word to
 * a command that only looks; to any other it may be a command line of its own, as in `sh -c "./check.sh"`.
 */
function pieces(command: string): readonly (readonly string[])[] {
  return simpleCommands(command).flatMap((all) => {
    const start = all.findIndex((word) => !/^\w+=/.test(word) && !/^(?:env|cross-env|time|exec|npx|!)$/.test(word));
    const words = start < 0 ? [] : all.slice(start);
    if (looksOnly(words)) return [words];
    const inner = words.filter((word) => /[\s;|&()]/.test(word));
    return [
      words.flatMap((word) => word.split(/[\s;|&()"'`]+/).filter((part) => part !== '')),
      ...inner.flatMap(pieces),
    ];
  });
}

/** Splits at what separates commands and words outside of quotes. */
function simpleCommands(command: string): readonly (readonly string[])[] {
  const commands: string[][] = [[]];
  let word: string | null = null;
  let quote = '';
  const endWord = (): void => {
    if (word !== null && word !== '') commands.at(-1)?.push(word);
    word = null;
  };
  for (const character of command) {
    if (quote !== '') {
      if (character === quote) quote = '';
      else word = (word ?? '') + character;
    } else if (/["'`]/.test(character)) {
      quote = character;
      word ??= '';
    } else if (/[;|&()\n]/.test(character)) {
      endWord();
      commands.push([]);
    } else if (/\s/.test(character)) endWord();
    else word = (word ?? '') + character;
  }
  endWord();
  return commands;
}
