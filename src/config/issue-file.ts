/** Reads Issue files and Spec folders into the vocabulary; every mistake of every file at once. */
import { failed, ok, type Diagnostic, type Result } from '../failure.js';
import {
  compareIssueIds,
  issueNumber,
  type Issue,
  type IssueId,
  type IssueState,
  type Phase,
  type SpecSlug,
} from '../issue.js';
import { parseSpecSlug } from '../issue.js';
import { printable } from '../platform/text.js';
import { specsFolder, type Spec, type SpecState } from '../spec.js';
import { IssueIndex, readDependencies } from './dependencies.js';
import { quote, type Place, type SourceText } from './diagnostic.js';
import {
  checkKeys,
  distinct,
  finiteNumber,
  globList,
  oneOf,
  positiveInteger,
  textList,
  FieldReader,
  type Reference,
} from './fields.js';
import { decode, readFields, splitFrontmatter } from './frontmatter.js';
import { roleOf, suggestSlug } from './issue-name.js';
import { hasText, splitHistory, titleOf } from './markdown.js';
import { nearest } from './nearest.js';

/** One file of a repository. */
export interface FileBytes {
  /** Relative to the repository, with `/`. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** An Issue whose `depends-on` is still as typed. */
export interface RawIssue extends Omit<Issue, 'dependsOn'> {
  readonly dependsOn: readonly Reference[];
  readonly gatePlaces: ReadonlyMap<string, Place>;
}

/** Where an Issue names others, so that later checks can point at it. */
export interface IssuePlaces {
  readonly dependsOn: ReadonlyMap<IssueId, Place>;
  readonly gates: ReadonlyMap<string, Place>;
}

/** A Spec with the places that checks across files need. */
export interface ParsedSpec {
  readonly spec: Spec;
  readonly places: ReadonlyMap<IssueId, IssuePlaces>;
  /** Where SPEC.md names the Specs that come first. */
  readonly dependsOnPlaces: ReadonlyMap<SpecSlug, Place>;
}

type Diagnostics = { readonly kind: 'diagnostics'; readonly diagnostics: readonly Diagnostic[] };

const issueStates: readonly IssueState[] = ['ready', 'in-progress', 'done', 'needs-human', 'wontfix'];
const specStates: readonly SpecState[] = ['draft', 'active', 'done', 'needs-human'];
const phases: readonly Phase[] = ['working', 'judging', 'integrating'];
const issueKeys = [
  'state',
  'depends-on',
  'touches',
  'resources',
  'max-attempts',
  'gates',
  'tests',
  'driver',
  'proof',
  'gap',
  'attempt',
  'phase',
];
const specKeys = ['state', 'depends-on', 'value'];
const globExample = '["src/auth/**"]';

/** Reads one Issue file; its `depends-on` is resolved by `parseSpecFolder`. */
export function parseIssueFile(file: FileBytes): Result<RawIssue, readonly Diagnostic[]> {
  const role = roleOf(`issues/${file.path.slice(file.path.lastIndexOf('/') + 1)}`);
  if (role.kind !== 'issue') {
    return failed([
      { file: file.path, message: 'this is not the name of an Issue', hint: 'name it NN-slug.md, such as 01-login.md' },
    ]);
  }
  const { problems, issue } = readIssue(file, role.id);
  return issue === undefined || problems.length > 0 ? failed(problems) : ok(issue);
}

/** Reads a whole Spec: SPEC.md and every file of `issues/`. */
export function parseSpecFolder(request: {
  readonly slug: SpecSlug;
  readonly files: readonly FileBytes[];
}): Result<ParsedSpec, Diagnostics> {
  const folder = `${specsFolder}/${request.slug}`;
  const sorted = sortFiles(folder, request.files);
  const spec = readSpecFile(folder, request.slug, request.files);
  const read = sorted.issues.map(({ id, file }) => ({ id, ...readIssue(file, id) }));
  const index = new IssueIndex(sorted.issues.map(({ id }) => id));
  const places = new Map<IssueId, IssuePlaces>();
  const issues: Issue[] = [];
  const problems = [...spec.problems, ...sorted.problems, ...sameNumbers(sorted.issues)];
  for (const { id, issue, references, problems: own } of read) {
    const resolved = index.resolve(id, references);
    problems.push(...inOrder([...own, ...resolved.problems]));
    if (issue === undefined) continue;
    const { gatePlaces, ...rest } = issue;
    issues.push({ ...rest, dependsOn: [...resolved.dependsOn.keys()] });
    places.set(id, { dependsOn: resolved.dependsOn, gates: gatePlaces });
  }
  if (problems.length > 0 || spec.value === undefined) return failed({ kind: 'diagnostics', diagnostics: problems });
  const { dependsOnPlaces, ...value } = spec.value;
  return ok({
    spec: { ...value, slug: request.slug, folder, issues, ignored: sorted.ignored },
    places,
    dependsOnPlaces,
  });
}

/** Points at gates that an Issue asks for and giro.toml does not have. */
export function checkGates({ places }: ParsedSpec, gates: readonly string[]): readonly Diagnostic[] {
  return [...places].flatMap(([issue, { gates: named }]) =>
    [...named].flatMap(([gate, place]) => {
      if (gates.includes(gate)) return [];
      const [best] = nearest(gate, gates);
      const hint = `${best === undefined ? '' : `did you mean \`${best}\`? `}gates of giro.toml: ${gates.join(', ')}`;
      return [
        {
          ...place,
          message: `\`gates\` of Issue ${issue} names a gate that giro.toml does not have: ${quote(gate)}`,
          hint,
        },
      ];
    }),
  );
}

/** Reads a Spec's folder name; a name that cannot be one is a mistake with a suggestion. */
export function checkSpecSlug(name: string): Result<SpecSlug, Diagnostic> {
  const slug = parseSpecSlug(name);
  if (slug !== undefined) return ok(slug);
  return failed({
    file: `${specsFolder}/${name}`,
    message: `${quote(name)} cannot be the name of a Spec: a-z, 0-9 and dashes between them, at most 100`,
    hint: `rename the folder to ${suggestSlug(name) ?? 'my-spec'}`,
  });
}

interface Sorted {
  readonly issues: readonly { readonly id: IssueId; readonly file: FileBytes }[];
  readonly ignored: readonly { readonly path: string; readonly reason: string }[];
  readonly problems: readonly Diagnostic[];
}

function sortFiles(folder: string, files: readonly FileBytes[]): Sorted {
  const issues: { readonly id: IssueId; readonly file: FileBytes }[] = [];
  const ignored: { readonly path: string; readonly reason: string }[] = [];
  const problems: Diagnostic[] = [];
  const names = new Set(files.map(({ path }) => path));
  for (const file of [...files].sort((left, right) => (left.path < right.path ? -1 : 1))) {
    const { path } = file;
    const role = path.startsWith(`${folder}/`) ? roleOf(path.slice(folder.length + 1)) : undefined;
    if (role === undefined) ignored.push({ path, reason: 'outside the folder of the Spec' });
    else if (role.kind === 'ignored') ignored.push({ path, reason: role.reason });
    else if (role.kind === 'issue') issues.push({ id: role.id, file });
    else if (role.kind === 'illegal') {
      const taken = names.has(`${folder}/issues/${role.suggestion}`);
      const name = taken ? role.suggestion.replace(/\.md$/, '-2.md') : role.suggestion;
      problems.push({ file: path, message: `this cannot be an Issue: ${role.message}`, hint: `rename it to ${name}` });
    }
  }
  issues.sort((left, right) => compareIssueIds(left.id, right.id));
  return { issues, ignored, problems };
}

function sameNumbers(issues: Sorted['issues']): readonly Diagnostic[] {
  const first = new Map<number, string>();
  return issues.flatMap(({ id, file }) => {
    const number = issueNumber(id);
    const other = first.get(number);
    if (other === undefined) {
      first.set(number, file.path);
      return [];
    }
    const free = Math.max(...issues.map((issue) => issueNumber(issue.id))) + 1;
    const hint = `rename one of them, for example to ${String(free).padStart(2, '0')}-${id.replace(/^[0-9]+-/, '')}.md`;
    return [{ file: file.path, message: `number ${number} is also used by ${other}`, hint }];
  });
}

interface ReadIssue {
  readonly problems: readonly Diagnostic[];
  readonly references: readonly Reference[];
  /** Absent when the file could not be read far enough. */
  readonly issue?: RawIssue;
}

function readIssue(file: FileBytes, id: IssueId): ReadIssue {
  const opened = open(file);
  if (!opened.ok) return { problems: opened.failure, references: [] };
  const { reader, hasFrontmatter, body, history } = opened.value;
  const { source } = reader;
  if (!hasFrontmatter) {
    const message = 'an Issue needs frontmatter with a state';
    return {
      problems: [{ file: source.file, line: 1, column: 1, ...firstLine(source), message, hint: stateExample }],
      references: [],
    };
  }
  checkKeys(reader, issueKeys);
  const driver = reader.field('driver');
  if (driver !== undefined) reader.reportKey(driver, '`driver` is not available in this version', 'remove it');
  if (reader.field('state') === undefined) {
    reader.problems.push({
      file: source.file,
      line: 1,
      column: 1,
      ...firstLine(source),
      message: 'the frontmatter has no `state`',
      hint: stateExample,
    });
  }
  const state = oneOf(reader, 'state', issueStates);
  const references = readDependencies(reader);
  const fields = readWishes(reader);
  const checkpoint = state === 'in-progress' ? readCheckpoint(reader) : undefined;
  if (!hasText(body)) {
    const hint = 'say below the heading what is wanted and how to see that it is done';
    reader.problems.push({ file: source.file, message: 'the Issue has no text', hint });
  }
  if (state === undefined) return { problems: reader.problems, references };
  const title = titleOf(body) ?? id.replace(/^[0-9]+-/, '');
  const common = { id, path: file.path, title, body, state, history, dependsOn: references, ...fields };
  return {
    problems: reader.problems,
    references,
    issue: checkpoint === undefined ? common : { ...common, checkpoint },
  };
}

const stateExample = 'begin the file with:\n---\nstate: ready\n---';

function firstLine(source: SourceText): { readonly source: string } {
  return { source: (source.text.replace(/^\uFEFF/, '').split('\n', 1)[0] ?? '').replace(/\r$/, '') };
}

/** The fields by which an Issue says what it needs. */
function readWishes(reader: FieldReader) {
  const gates = textList(reader, 'gates', '[review]');
  const gatesField = reader.field('gates');
  const isEmpty =
    gatesField?.value.kind === 'null' || (gatesField?.value.kind === 'list' && gatesField.value.items.length === 0);
  if (gatesField !== undefined && isEmpty) {
    reader.reportKey(
      gatesField,
      '`gates` is empty',
      'remove it: an Issue can add gates to those of giro.toml, never take one away',
    );
  }
  const maxAttempts = positiveInteger(reader, 'max-attempts');
  const gap = positiveInteger(reader, 'gap');
  const proof = oneOf(reader, 'proof', ['red-green'] as const);
  return {
    touches: globList(reader, 'touches', globExample),
    resources: distinct(textList(reader, 'resources', '[postgres]').map(({ text }) => text)),
    tests: globList(reader, 'tests', '["test/auth/**"]'),
    gates: distinct(gates.map(({ text }) => text)),
    gatePlaces: new Map(gates.map(({ text, place }) => [text, place])),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(gap === undefined ? {} : { gap }),
    ...(proof === undefined ? {} : { proof }),
  };
}

/** The engine's checkpoint; half of one is none. */
function readCheckpoint(reader: FieldReader): { readonly attempt: number; readonly phase: Phase } | undefined {
  const attempt = positiveInteger(reader, 'attempt');
  const phase = oneOf(reader, 'phase', phases);
  return attempt === undefined || phase === undefined ? undefined : { attempt, phase };
}

interface Opened {
  readonly reader: FieldReader;
  readonly hasFrontmatter: boolean;
  readonly body: string;
  readonly history: string;
}

function open(file: FileBytes): Result<Opened, readonly Diagnostic[]> {
  const source = decode(file.path, file.bytes);
  if (!source.ok) return source;
  const split = splitFrontmatter(source.value);
  if (!split.ok) return split;
  const { fields, problems, readable } = readFields(source.value, split.value);
  if (!readable) return failed(problems);
  const { body, history } = splitHistory(split.value.body);
  const reader = new FieldReader(source.value, fields, problems);
  return ok({ reader, hasFrontmatter: split.value.kind === 'frontmatter', body, history: withLineFeeds(history) });
}

/** History is read with plain line feeds, whatever the file uses. */
function withLineFeeds(text: string): string {
  return text.replace(/\r\n/g, '\n');
}

interface ReadSpec {
  readonly problems: readonly Diagnostic[];
  readonly value?: Pick<Spec, 'title' | 'body' | 'state' | 'dependsOn' | 'value'> & Pick<ParsedSpec, 'dependsOnPlaces'>;
}

function readSpecFile(folder: string, slug: SpecSlug, files: readonly FileBytes[]): ReadSpec {
  const path = `${folder}/SPEC.md`;
  const file = files.find((candidate) => candidate.path === path);
  if (file === undefined) {
    const other = files.find((candidate) => candidate.path.toLowerCase() === path.toLowerCase());
    const hint =
      other === undefined
        ? `write it: a heading and the goal in prose, such as\n# ${slug}\nWhat is wanted.`
        : `rename ${printable(other.path)}`;
    return { problems: [{ file: path, message: 'the Spec has no SPEC.md', hint }] };
  }
  const opened = open(file);
  if (!opened.ok) return { problems: opened.failure };
  const { reader, body } = opened.value;
  checkKeys(reader, specKeys);
  const state = reader.field('state') === undefined ? 'draft' : oneOf(reader, 'state', specStates);
  const dependsOnPlaces = readSpecDependencies(reader, slug);
  const value = finiteNumber(reader, 'value');
  if (state === undefined) return { problems: inOrder(reader.problems) };
  const common = { title: titleOf(body) ?? slug, body, state, dependsOn: [...dependsOnPlaces.keys()], dependsOnPlaces };
  return { problems: inOrder(reader.problems), value: value === undefined ? common : { ...common, value } };
}

function readSpecDependencies(reader: FieldReader, self: SpecSlug): ReadonlyMap<SpecSlug, Place> {
  const found = new Map<SpecSlug, Place>();
  for (const { text, place } of textList(reader, 'depends-on', '[storage]')) {
    const slug = parseSpecSlug(text);
    const hint = 'write the folder names of other Specs: depends-on: [storage]';
    if (slug === undefined)
      reader.problems.push({ ...place, message: `\`depends-on\` holds ${quote(text)}, not the name of a Spec`, hint });
    else if (slug === self)
      reader.problems.push({ ...place, message: 'the Spec depends on itself', hint: 'remove it' });
    else if (!found.has(slug)) found.set(slug, place);
  }
  return found;
}

function inOrder(problems: readonly Diagnostic[]): readonly Diagnostic[] {
  return [...problems].sort(
    (left, right) => (left.line ?? 0) - (right.line ?? 0) || (left.column ?? 0) - (right.column ?? 0),
  );
}
