/** `[verify]` of giro.toml: the gates. */
import { z } from 'zod';
import type { GateDefinition, GateScope } from '../policy.js';
import { checkTable, describe, duration, isTable, variableNames, word, type Checked, type Problem } from './check.js';
import { quote, suggest } from './diagnostic.js';
import { ruleShape, rulesOf } from './evidence-table.js';
import { distinct } from './fields.js';
import { readJudgedGate, type GateContext } from './judged-table.js';
import type { TomlPath } from './toml.js';

const scopes = ['issue', 'integration', 'spec'] as const satisfies readonly GateScope[];
const kinds = ['command', 'prompt', 'skill'] as const satisfies readonly GateDefinition['kind'][];
const example = '[verify]\ntest = "npm test"';
const commandError = 'must be a shell command, such as "npm test"';

/** Reads all gates; a run without one that guards integration would prove nothing. */
export function readGates(input: unknown, context: GateContext): Checked<readonly GateDefinition[]> {
  if (input !== undefined && !isTable(input)) {
    return {
      problems: [{ path: ['verify'], part: 'value', message: '`verify` must be a table of gates', hint: example }],
    };
  }
  const names = Object.keys(input ?? {});
  if (names.length === 0) {
    const path = input === undefined ? [] : ['verify'];
    return {
      problems: [
        {
          path,
          part: 'key',
          message: 'no gate is configured: nothing would be verified',
          hint: `add one:\n${example}`,
        },
      ],
    };
  }
  const read = names.map((name) => readGate(name, input?.[name], context));
  const problems = read.flatMap((gate) => gate.problems);
  if (problems.length > 0) return { problems };
  const gates = read.flatMap(({ value }) => (value === undefined ? [] : [value]));
  if (!gates.some((gate) => gate.on.includes('integration'))) {
    const message = 'no gate has `integration` in its `on`: what lands would not be verified';
    return {
      problems: [
        { path: ['verify'], part: 'key', message, hint: `leave \`on\` out of one of them, or add one:\n${example}` },
      ],
    };
  }
  return { problems: [], value: gates };
}

function readGate(name: string, input: unknown, context: GateContext): Checked<GateDefinition> {
  const path: TomlPath = ['verify', name];
  const misnamed = nameProblem(name, path);
  const read = readGateTable(name, input, context);
  return misnamed === undefined ? read : { problems: [misnamed, ...read.problems] };
}

function readGateTable(name: string, input: unknown, context: GateContext): Checked<GateDefinition> {
  const path: TomlPath = ['verify', name];
  const problem = kindProblem(input, path);
  if (problem !== undefined) return { problems: [problem] };
  const kind = isTable(input) ? input['kind'] : undefined;
  if (kind === 'prompt' || kind === 'skill') return readJudgedGate({ name, kind, path }, input, context);
  const table = typeof input === 'string' ? { run: input } : input;
  const { problems, value } = checkTable(gateSchema(context.defaultTimeoutMs), table, path);
  if (value === undefined) {
    const short =
      typeof input === 'string'
        ? problems.map((found) => ({ ...found, path, message: found.message.replace('`run`', quote(name)) }))
        : problems;
    return { problems: short };
  }
  const { run, on, timeout, env, 'after-green': afterGreen } = value;
  const common = { name, on: distinct(on), timeoutMs: timeout, env, afterGreen };
  return { problems, value: { ...common, kind: 'command', run, rules: rulesOf(value) } };
}

function nameProblem(name: string, path: TomlPath): Problem | undefined {
  if (name === 'red-green') {
    const message = `${quote(name)} is giro's own gate, which [evidence] proof asks for`;
    return { path, part: 'key', message, hint: 'give it another name' };
  }
  if (/^[a-z0-9][a-z0-9-]{0,49}$/.test(name)) return undefined;
  const hint = 'use a-z, 0-9 and dashes, at most 50 characters';
  return { path, part: 'key', message: `${quote(name)} cannot be the name of a gate`, hint };
}

function kindProblem(input: unknown, path: TomlPath): Problem | undefined {
  if (typeof input === 'string') return undefined;
  if (!isTable(input)) {
    const message = `${quote(String(path.at(-1)))} must be a shell command or a table, not ${describe(input)}`;
    return { path, part: 'value', message, hint: example };
  }
  const kind = input['kind'] ?? 'command';
  if (kinds.some((known) => known === kind)) return undefined;
  const at = { path: [...path, 'kind'], part: 'value' } as const;
  if (typeof kind !== 'string')
    return { ...at, message: `\`kind\` must be a text, not ${describe(kind)}`, hint: `allowed: ${kinds.join(', ')}` };
  return { ...at, message: `unknown kind of gate: ${quote(kind)}`, hint: suggest(kind, kinds, 'allowed') };
}

function gateSchema(defaultTimeoutMs: number) {
  return z.strictObject({
    kind: z.literal('command').default('command'),
    run: z.string({ error: commandError }).refine(doesSomething, { error: commandError }),
    on: z.array(word(scopes), { error: `must be a list of ${scopes.join(', ')}` }).default([...scopes]),
    timeout: duration().default(defaultTimeoutMs),
    env: variableNames(),
    'after-green': z.boolean({ error: 'must be true or false' }).default(false),
    ...ruleShape,
  });
}

/** A command of blanks and comments alone always exits 0 and would pass everything. */
function doesSomething(command: string): boolean {
  return !command.includes('\0') && command.split('\n').some((line) => !/^\s*(?:#.*)?$/.test(line));
}
