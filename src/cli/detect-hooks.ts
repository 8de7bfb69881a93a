/** Git hooks as gates that a person can switch on: giro runs no hook, and a check must not be lost by that. */
import { detectTests, packageManager, scriptsOf, type HookFile, type Project } from './detect.js';

/** One hook's check as a gate could run it. */
export interface HookGate {
  readonly name: string;
  readonly command: string;
  readonly from: string;
  /** Why it cannot be taken over as it stands. */
  readonly caution?: string;
}

/** Turns the checks of hooks into gates; what the tests run anyway is left out, and no name comes twice. */
export function detectHooks(project: Project): readonly HookGate[] {
  const taken = new Set(detectTests(project).map(({ command }) => command));
  const gates = [...managedHooks(project), ...project.hooks.flatMap((hook) => hookGates(hook, project))];
  const fresh = gates.filter(({ command }) => !taken.has(command) && Boolean(taken.add(command)));
  const used = new Map<string, number>([['test', 1]]);
  return fresh.map((gate) => {
    const count = (used.get(gate.name) ?? 0) + 1;
    used.set(gate.name, count);
    return count === 1 ? gate : { ...gate, name: `${gate.name}-${count}` };
  });
}

const lefthookFiles = [
  'lefthook.yml',
  '.lefthook.yml',
  'lefthook.yaml',
  '.lefthook.yaml',
  'lefthook.toml',
  'lefthook.json',
];

/** Hook managers can run all their checks on all files by themselves. */
function managedHooks({ names, files }: Project): readonly HookGate[] {
  const gates: HookGate[] = [];
  const lefthook = lefthookFiles.find((name) => names.has(name));
  if (lefthook !== undefined) {
    const runner = files.has('package.json') ? 'npx --no-install lefthook' : 'lefthook';
    gates.push({ name: 'lefthook', command: `${runner} run pre-commit --all-files`, from: lefthook });
  }
  const preCommit = ['.pre-commit-config.yaml', '.pre-commit-config.yml'].find((name) => names.has(name));
  if (preCommit !== undefined) {
    gates.push({ name: 'pre-commit', command: 'pre-commit run --all-files', from: preCommit });
  }
  return gates;
}

/** Hooks that judge the code; those about messages and branches have nothing to say on a code tree. */
const judgingHooks = /(?:^|\/)(?:pre-commit|pre-push|pre-merge-commit)$/;

/** Written into `.git/hooks` by the managers above, which are handled already. */
const managerStub = /lefthook|pre-commit\.com|pre_commit|husky/i;

function hookGates(hook: HookFile, project: Project): readonly HookGate[] {
  if (!judgingHooks.test(hook.path)) return [];
  if (!hook.tracked && managerStub.test(hook.text)) return [];
  const lines = commandLines(hook.text);
  if (lines.length === 0) return [];
  if (!lines.every(isSimpleCommand)) return [wholeHook(hook)];
  return lines.map((line) => lineGate(line, hook, project));
}

/** The lines that do something: no comments, no shell options, none of the lines husky used to write. */
function commandLines(text: string): readonly string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#') && !/^(?:set [-+]|exit 0$|\. .*husky\.sh)/.test(line));
}

/** One program with plain arguments: no control flow, variables, quotes left open, or lines that go on. */
function isSimpleCommand(line: string): boolean {
  const plain = /^[\w./@:=,+*-]+(?: +(?:[\w./@:=,+*-]+|"[\w ./@:=,+*-]*"|'[^'\\]*'))*$/.test(line);
  return (
    plain &&
    !/^(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|exec|exit|cd|source|\.|export|[A-Z_]+=\S*)(?: |$)/.test(
      line,
    )
  );
}

function wholeHook({ path, tracked }: HookFile): HookGate {
  const gate = { name: path.slice(path.lastIndexOf('/') + 1), command: `sh ${path}`, from: path };
  if (tracked) return { ...gate, caution: 'a hook may look at staged files only, and in a gate nothing is staged' };
  return {
    ...gate,
    caution: 'it is in no commit, so a gate cannot run it: put its checks into a script of the project',
  };
}

function lineGate(line: string, { path }: HookFile, project: Project): HookGate {
  if (!/\blint-staged\b|\bpretty-quick\b.*--staged/.test(line))
    return { name: gateName(line), command: line, from: path };
  const lint = scriptsOf(project).has('lint') ? `${packageManager(project)} run lint` : line;
  return {
    name: 'lint',
    command: lint,
    from: path,
    caution: `\`${line}\` looks at staged files only, and in a gate nothing is staged`,
  };
}

/** `npm run lint:all` is `lint-all`, `npx eslint .` is `eslint`, `./check.sh` is `check`. */
function gateName(line: string): string {
  const words = line.split(/ +/).filter((word) => !word.startsWith('-'));
  const runners = new Set([
    'npm',
    'pnpm',
    'yarn',
    'bun',
    'npx',
    'bunx',
    'run',
    'exec',
    'dlx',
    'sh',
    'bash',
    'make',
    'uv',
    'poetry',
  ]);
  const word = words.find((candidate) => !runners.has(candidate)) ?? words[0] ?? '';
  const name = (word.split('/').at(-1) ?? '')
    .toLowerCase()
    .replace(/\.\w+$/, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return name === '' ? 'hook' : name;
}
