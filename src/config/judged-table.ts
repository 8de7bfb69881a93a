/**
 * Gates that a judge decides: `kind = "prompt"` and `kind = "skill"`. Rubrics and skills are read from the person's working
 * files (L9), and what is wrong with one is a mistake of the configuration.
 */
import { join, posix } from 'node:path';
import { z } from 'zod';
import { failed, ok, type Diagnostic, type Result } from '../failure.js';
import { readManyIfExist } from '../platform/files.js';
import type { GateScope, JudgedGate } from '../policy.js';
import { checkTable, duration, reasonAgainst, variableNames, word, type Checked, type Problem } from './check.js';
import { placeAtLine, placeIn, quote, type Place, type SourceText } from './diagnostic.js';
import { distinct } from './fields.js';
import { decode, readFields, splitFrontmatter } from './frontmatter.js';
import type { TomlPath } from './toml.js';

/** What reading a gate takes beyond its table. */
export interface GateContext {
  readonly defaultTimeoutMs: number;
  /** Absolute path of the person's checkout. */
  readonly repository: string;
}

const scopes = ['issue', 'integration', 'spec'] as const satisfies readonly GateScope[];

/** Reads one of them; the rubric or skill comes with it, whole. */
export function readJudgedGate(
  named: { readonly name: string; readonly kind: JudgedGate['kind']; readonly path: TomlPath },
  input: unknown,
  context: GateContext,
): Checked<JudgedGate> {
  return named.kind === 'prompt' ? readPrompt(named, input, context) : readSkill(named, input, context);
}

type Named = Parameters<typeof readJudgedGate>[0];

function commonKeys(context: GateContext) {
  return {
    on: z.array(word(scopes), { error: `must be a list of ${scopes.join(', ')}` }).default(['issue']),
    timeout: duration().default(context.defaultTimeoutMs),
    env: variableNames(),
    'after-green': z.boolean({ error: 'must be true or false' }).default(false),
  };
}

function readPrompt({ name, path }: Named, input: unknown, context: GateContext): Checked<JudgedGate> {
  const rubric = z.string({ error: 'must be the path of a .md file, or the rubric itself' });
  const schema = z.strictObject({ kind: z.literal('prompt'), rubric, ...commonKeys(context) });
  const { problems, value } = checkTable(schema, input, path);
  if (value === undefined) return { problems };
  const read = rubricOf(value.rubric, context.repository);
  if (!read.ok) return { problems: [{ path: [...path, 'rubric'], part: 'value', ...read.failure }] };
  const { on, timeout, env, 'after-green': afterGreen } = value;
  return {
    problems: [],
    value: { name, kind: 'prompt', rubric: read.value, on: distinct(on), timeoutMs: timeout, env, afterGreen },
  };
}

type Mistake = Pick<Problem, 'message' | 'hint' | 'elsewhere'>;

/** One line that ends in `.md` is a path, and one that can be nothing but a path must. Everything else is the rubric itself. */
function rubricOf(
  written: string,
  repository: string,
): Result<{ readonly text: string; readonly source: string | null }, Mistake> {
  if (written.trim() === '') return failed({ message: '`rubric` is empty: the judge would have nothing to judge by' });
  const source = written.trim();
  if (!/^.*\.md$/i.test(source)) {
    if (!isPath(source, repository)) return ok({ text: written, source: null });
    const hint = 'name a .md file, or write the rubric itself here, in words';
    return failed({ message: `${quote(source)} looks like a path, but is none of a .md file`, hint });
  }
  const read = readText(source, { repository, key: 'rubric', hint: 'write it, or put the rubric itself here' });
  if (!read.ok) return read;
  if (read.value.text.trim() === '') return failed({ message: `the rubric ${quote(source)} is empty` });
  return ok({ text: read.value.text, source });
}

/** A judge must not be left with the name of a file to judge by. */
function isPath(line: string, repository: string): boolean {
  if (/^(?:\S*\/\S*|\S+\.\w{1,8})$/.test(line)) return true;
  if (/[\r\n]/.test(line) || line.length > 200 || reasonAgainst(line) !== undefined) return false;
  const read = bytesOf(join(repository, line));
  return !read.ok || read.value !== null;
}

function readSkill({ name, path }: Named, input: unknown, context: GateContext): Checked<JudgedGate> {
  const skill = z.string({ error: 'must be the path of a SKILL.md' });
  const schema = z.strictObject({ kind: z.literal('skill'), skill, ...commonKeys(context) });
  const { problems, value } = checkTable(schema, input, path);
  if (value === undefined) return { problems };
  const read = skillOf(value.skill.trim(), context.repository);
  if (!read.ok) return { problems: [{ path: [...path, 'skill'], part: 'value', ...read.failure }] };
  const { on, timeout, env, 'after-green': afterGreen } = value;
  return {
    problems: [],
    value: { name, kind: 'skill', skill: read.value, on: distinct(on), timeoutMs: timeout, env, afterGreen },
  };
}

function skillOf(path: string, repository: string): Result<Extract<JudgedGate, { kind: 'skill' }>['skill'], Mistake> {
  if (posix.basename(path) !== 'SKILL.md') {
    const hint = `write ${JSON.stringify(posix.join(path === '' ? 'skills/review' : path, 'SKILL.md'))}`;
    return failed({ message: `\`skill\` must be the path of a SKILL.md, not ${quote(path)}`, hint });
  }
  const read = readText(path, { repository, key: 'skill', hint: 'write it, or name another SKILL.md' });
  if (!read.ok) return read;
  const head = headOf(read.value);
  return head.ok ? ok({ path, ...head.value, text: read.value.text }) : failed(inThatFile(head.failure));
}

/** A mistake in another file than giro.toml. */
function inThatFile(elsewhere: Diagnostic): Mistake {
  return { message: elsewhere.message, elsewhere };
}

const skillExample = '---\nname: review\ndescription: What it is for, and when.\n---';

/** The frontmatter of the Agent Skills format; keys beyond these two are the business of others. */
function headOf(source: SourceText): Result<{ readonly name: string; readonly description: string }, Diagnostic> {
  const split = splitFrontmatter(source);
  if (!split.ok) return failed(split.failure[0] ?? { file: source.file, message: 'the frontmatter cannot be read' });
  const start = placeAtLine(source, 1);
  if (split.value.kind === 'none') {
    return failed({ ...start, message: 'a skill begins with frontmatter', hint: `such as\n${skillExample}` });
  }
  const { fields, problems } = readFields(source, split.value);
  if (problems[0] !== undefined) return failed(problems[0]);
  const valueOf = (key: string) => fields.find((field) => field.key === key)?.value;
  const textOf = (key: string): string => {
    const value = valueOf(key);
    return value?.kind === 'text' ? value.text.trim() : '';
  };
  const placeOf = (key: string): Place => {
    const value = valueOf(key);
    return value === undefined ? start : placeIn(source, value.start, Math.max(1, value.end - value.start));
  };
  const [name, description] = [textOf('name'), textOf('description')];
  if (!/^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/.test(name)) {
    const message = name === '' ? 'the skill has no `name`' : `${quote(name)} cannot be the name of a skill`;
    return failed({ ...placeOf('name'), message, hint: 'use a-z, 0-9 and dashes, at most 64 characters' });
  }
  if (description === '') {
    const message = 'the skill has no `description`';
    return failed({ ...placeOf('description'), message, hint: `such as\n${skillExample}` });
  }
  if (split.value.body.trim() === '') {
    const message = 'the skill has nothing below its frontmatter: the judge would have nothing to judge by';
    return failed({ ...start, message, hint: 'write the procedure there' });
  }
  return ok({ name, description });
}

function readText(
  path: string,
  { repository, key, hint }: { readonly repository: string; readonly key: string; readonly hint: string },
): Result<SourceText, Mistake> {
  const reason = reasonAgainst(path);
  if (reason !== undefined) {
    return failed({ message: `\`${key}\` must be a path inside the repository (it ${reason}), not ${quote(path)}` });
  }
  const bytes = bytesOf(join(repository, path));
  if (!bytes.ok) {
    const why = bytes.failure === 'EISDIR' ? 'is a folder' : `cannot be read: ${bytes.failure}`;
    return failed({ message: `\`${key}\` names ${quote(path)}, which ${why}`, hint });
  }
  if (bytes.value === null) return failed({ message: `\`${key}\` names ${quote(path)}, which does not exist`, hint });
  const decoded = decode(path, bytes.value);
  if (decoded.ok) return decoded;
  return failed(inThatFile(decoded.failure[0] ?? { file: path, message: 'cannot be read' }));
}

function bytesOf(path: string): Result<Uint8Array | null, string> {
  try {
    return ok(readManyIfExist([path])[0] ?? null);
  } catch (cause) {
    return failed(cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause));
  }
}
