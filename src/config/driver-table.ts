/** `[driver]` and `[roles]` of giro.toml. */
import { z } from 'zod';
import type { DriverDefinition, Policy, Reports } from '../policy.js';
import {
  checkTable,
  describe,
  insidePath,
  isTable,
  unknownKey,
  variableNames,
  word,
  type Checked,
  type Problem,
} from './check.js';
import { quote, suggest } from './diagnostic.js';
import { nearest } from './nearest.js';
import type { TomlPath } from './toml.js';

const kinds = ['command', 'scripted'] as const;

/** How Claude Code is driven by a `command` driver; docs/drivers.md says what each option is for. */
export const claudeCommand: readonly string[] = [
  ...['claude', '-p', '--output-format', 'stream-json', '--verbose'],
  ...['--setting-sources', '', '--strict-mcp-config', '--no-session-persistence'],
  ...['--permission-mode', 'acceptEdits', '--permission-prompts', 'none'],
  ...['--allowedTools', 'Bash,Read,Write,Edit,Glob,Grep'],
];

/** How the agents that have no driver yet are started through the command driver. */
const laterKinds: Readonly<Record<string, readonly string[]>> = {
  claude: claudeCommand,
  codex: ['codex', 'exec', '--sandbox', 'workspace-write', '-'],
  opencode: ['opencode', 'run'],
  gemini: ['gemini', '--approval-mode', 'yolo'],
  copilot: ['copilot', '--allow-all-tools'],
  acp: ['./my-agent'],
};

const commandExample = 'run = ["./my-agent", "--headless"]';
const runError = `must be a list of texts, program first, such as ${commandExample.slice('run = '.length)}`;

function argument() {
  const error = 'must be a text';
  return z.string({ error }).refine((text) => !text.includes('\0'), { error });
}

const commandSchema = z.strictObject({
  kind: z.string().optional(),
  run: z
    // An argument may be empty (`--setting-sources ""`); the program may not.
    .array(argument(), { error: runError })
    .min(1, { error: runError })
    .refine((run) => run.length === 0 || run[0]?.trim() !== '', {
      error: 'must be a text that is not empty',
      path: [0],
    })
    .transform((run): readonly [string, ...string[]] => [run[0] ?? '', ...run.slice(1)]),
  env: variableNames(),
  ...reportKeys(),
});

const scriptedSchema = z.strictObject({
  kind: z.string().optional(),
  script: insidePath(),
  env: variableNames(),
  ...reportKeys(),
});

function reportKeys() {
  const yes = z.boolean({ error: 'must be true or false' }).default(false);
  return { 'reports-cost': yes, 'reports-tokens': yes };
}

function reportsOf(value: { readonly 'reports-cost': boolean; readonly 'reports-tokens': boolean }): Reports {
  return { cost: value['reports-cost'], tokens: value['reports-tokens'] };
}

const exampleOfDriver = `[driver]\ndefault = "command"\n\n[driver.command]\n${commandExample}`;

/** The drivers by name, and every name that stands in the file, right or wrong. */
export interface DriverTables {
  readonly problems: readonly Problem[];
  readonly names: readonly string[];
  readonly value?: Policy['drivers'];
}

/** Reads `[driver]`: its default, and one table for each driver. */
export function readDrivers(input: unknown): DriverTables {
  if (input === undefined) {
    const message = 'no driver is configured: giro has to be told which program does the work';
    return { problems: [{ path: [], part: 'key', message, hint: exampleOfDriver }], names: [] };
  }
  if (!isTable(input)) {
    return {
      problems: [{ path: ['driver'], part: 'value', message: '`driver` must be a table', hint: exampleOfDriver }],
      names: [],
    };
  }
  const names = Object.keys(input).filter((key) => key !== 'default' && isTable(input[key]));
  const read = names.map((name) => ({ name, ...readDriver(name, input[name]) }));
  const chosen = readDefault(input['default'], names);
  const problems = [...misplaced(input), ...chosen.problems, ...read.flatMap((driver) => driver.problems)];
  if (chosen.value === undefined || problems.length > 0) return { problems, names };
  const byName = new Map(read.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value] as const])));
  return { problems, names, value: { default: chosen.value, byName } };
}

/** Keys that are no table: `default` under another spelling, or those of a driver that were written without its table. */
function misplaced(input: Readonly<Record<string, unknown>>): readonly Problem[] {
  return Object.keys(input)
    .filter((key) => key !== 'default' && !isTable(input[key]))
    .map((key) => {
      const problem = unknownKey(['driver', key], ['default']);
      if (nearest(key, ['default']).length > 0) return problem;
      return { ...problem, hint: `a driver has a table of its own:\n[driver.command]\n${commandExample}` };
    });
}

function readDefault(value: unknown, names: readonly string[]): Checked<string> {
  const path: TomlPath = ['driver', 'default'];
  const refuse = (message: string, hint: string): Checked<string> => ({
    problems: [{ path, part: 'value', message, hint }],
  });
  if (value === undefined) {
    const example = names[0] === undefined ? exampleOfDriver : `[driver]\ndefault = ${JSON.stringify(names[0])}`;
    return refuse('`default` is missing: it names the driver that does the work', example);
  }
  if (typeof value !== 'string')
    return refuse(`\`default\` must be the name of a driver, not ${describe(value)}`, exampleOfDriver);
  if (names.includes(value)) return { problems: [], value };
  const later = Object.hasOwn(laterKinds, value) ? laterKinds[value] : undefined;
  if (later !== undefined) return refuse(...laterKind(value, value, later));
  if (value === 'command') return refuse('there is no [driver.command]', `add\n[driver.command]\n${commandExample}`);
  const hint =
    names.length === 0
      ? `add\n[driver.${value}]\nkind = "command"\n${commandExample}`
      : suggest(value, names, 'configured');
  return refuse(`\`default\` names a driver that is not configured: ${quote(value)}`, hint);
}

function laterKind(kind: string, name: string, run: readonly string[]): [message: string, hint: string] {
  const command = `run = [${run.map((part) => JSON.stringify(part)).join(', ')}]`;
  const table = `[driver.${name}]\nkind = "command"\n${command}`;
  return [
    `the ${kind} driver is not available in this version; drive it through the command driver`,
    `for example\n${table}`,
  ];
}

function readDriver(name: string, input: unknown): Checked<DriverDefinition> {
  const read = readDriverTable(name, input);
  if (!isTable(input) || /^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$/.test(name)) return read;
  const message = `${quote(name)} cannot be the name of a driver`;
  const hint = 'use letters, digits, - and _, at most 50';
  return { problems: [{ path: ['driver', name], part: 'key', message, hint }, ...read.problems] };
}

function readDriverTable(name: string, input: unknown): Checked<DriverDefinition> {
  const path: TomlPath = ['driver', name];
  const refuse = (
    at: TomlPath,
    part: 'key' | 'value',
    [message, hint]: readonly [string, string],
  ): Checked<DriverDefinition> => ({
    problems: [{ path: at, part, message, hint }],
  });
  if (!isTable(input)) return { problems: [] };
  const written = input['kind'];
  const kind = written ?? name;
  if (typeof kind === 'string' && Object.hasOwn(laterKinds, kind)) {
    const at = written === undefined ? path : [...path, 'kind'];
    return refuse(at, written === undefined ? 'key' : 'value', laterKind(kind, name, laterKinds[kind] ?? []));
  }
  if (kind === 'command') return readCommand(name, input, path);
  if (kind === 'scripted') return readScripted(name, input, path);
  if (written === undefined) return refuse(path, 'key', [`[driver.${name}] has no \`kind\``, 'add kind = "command"']);
  const hint = typeof written === 'string' ? suggest(written, kinds, 'allowed') : `allowed: ${kinds.join(', ')}`;
  return refuse([...path, 'kind'], 'value', [`unknown kind of driver: ${describe(written)}`, hint]);
}

function readCommand(
  name: string,
  input: Readonly<Record<string, unknown>>,
  path: TomlPath,
): Checked<DriverDefinition> {
  const asText = textualRun(input['run'], path);
  const { problems, value } = checkTable(commandSchema, asText === undefined ? input : { ...input, run: ['-'] }, path);
  if (asText !== undefined || value === undefined) return { problems: [...(asText ?? []), ...problems] };
  return { problems, value: { kind: 'command', name, run: value.run, env: value.env, reports: reportsOf(value) } };
}

/** A command line in one text is the mistake everybody makes first: it gets the list to write. */
function textualRun(run: unknown, path: TomlPath): readonly Problem[] | undefined {
  if (typeof run !== 'string' || run.trim() === '') return undefined;
  const list = run
    .trim()
    .split(/\s+/)
    .map((part) => JSON.stringify(part));
  const message = '`run` must be a list of texts, program first; it is started without a shell';
  return [{ path: [...path, 'run'], part: 'value', message, hint: `write run = [${list.join(', ')}]` }];
}

function readScripted(
  name: string,
  input: Readonly<Record<string, unknown>>,
  path: TomlPath,
): Checked<DriverDefinition> {
  const { problems, value } = checkTable(scriptedSchema, input, path);
  if (value === undefined) return { problems };
  return {
    problems,
    value: { kind: 'scripted', name, script: value.script, env: value.env, reports: reportsOf(value) },
  };
}

/** Reads `[roles]`; a role that is not given is played by the default driver. */
export function readRoles(input: unknown, names: readonly string[]): Checked<Partial<Policy['roles']>> {
  const driver = word(names.length === 0 ? [''] : [names[0] ?? '', ...names.slice(1)]).exactOptional();
  const schema = z.strictObject({ worker: driver, judge: driver, planner: driver });
  return checkTable(schema, input ?? {}, ['roles']);
}
