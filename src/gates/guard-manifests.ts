/** Scripts and targets of manifests, and the parts of them that configure test runners, as values to compare. */
import { posix } from 'node:path';
import { z } from 'zod';
import { withoutComments } from './guard-source.js';

const jsonManifests = new Set(['package.json', 'deno.json', 'deno.jsonc', 'composer.json']);
/** Names of Makefiles, as make looks for them. */
export const makefiles: ReadonlySet<string> = new Set(['Makefile', 'makefile', 'GNUmakefile']);
const justfiles = new Set(['justfile', 'Justfile', '.justfile']);
const sectioned: Readonly<Record<string, RegExp>> = {
  'pyproject.toml': /^tool\.(?:pytest|coverage|tox|nox|hatch\.envs)\b/,
  'setup.cfg': /^(?:tool:pytest|coverage)\b/,
  'tox.ini': /^(?:pytest|testenv|coverage)\b/,
};

/** What configures an application, and vitest in a part of its own. */
const viteConfig = /^vite\.config\.[cm]?[jt]s$/;

/** Keys of package.json that configure runners. */
const runnerKeys = ['jest', 'mocha', 'ava', 'nyc', 'c8', 'tap', 'vitest', 'wireit'];

/** Whether a file holds scripts, or parts that configure runners. */
export function isManifest(path: string): boolean {
  const name = posix.basename(path);
  return (
    jsonManifests.has(name) || makefiles.has(name) || justfiles.has(name) || name in sectioned || viteConfig.test(name)
  );
}

/** Whether a file configures an application beside the runner. */
export function isAppConfig(path: string): boolean {
  return viteConfig.test(posix.basename(path));
}

const scriptsSchema = z.record(z.string(), z.unknown());

/** The scripts of a manifest by name; none when it has none or cannot be read. */
export function readScripts(path: string, text: string): ReadonlyMap<string, string> {
  if (!jsonManifests.has(posix.basename(path))) return new Map();
  const value = readJson(text);
  const tables = [value['scripts'], value['tasks']].map((table) => scriptsSchema.safeParse(table).data ?? {});
  return new Map(
    tables.flatMap((table) =>
      Object.entries(table).map(([name, script]) => [
        name,
        typeof script === 'string' ? script : JSON.stringify(script),
      ]),
    ),
  );
}

function readJson(text: string): Readonly<Record<string, unknown>> {
  const plain = withoutComments(text, 'js').replace(/,(\s*[}\]])/g, '$1');
  try {
    return scriptsSchema.safeParse(JSON.parse(plain)).data ?? {};
  } catch {
    return {};
  }
}

/** Names with all that they call in turn, and what runs before and after each of them. */
export function closureOf(names: readonly string[], scripts: ReadonlyMap<string, string>): readonly string[] {
  const all = new Set<string>();
  const visit = (name: string): void => {
    if (all.has(name)) return;
    all.add(name);
    const script = scripts.get(name);
    if (script === undefined) return;
    all.add(`pre${name}`).add(`post${name}`);
    for (const word of script.split(/[\s"'`;|&()]+/))
      if (scripts.has(word.replace(/^npm:/, ''))) visit(word.replace(/^npm:/, ''));
  };
  for (const name of names) visit(name);
  return [...all];
}

/** Text of a manifest before and after. */
export interface Versions {
  readonly before: string;
  readonly after: string;
}

/** A script or a target whose value is another. */
export interface ChangedScript {
  readonly name: string;
  readonly was: string | undefined;
  readonly is: string | undefined;
}

/** Finds scripts and targets that gates call and that are not what they were. New names change nothing, but for hooks of old ones. */
export function changedScripts(
  path: string,
  { before, after }: Versions,
  called: { readonly scripts: ReadonlySet<string>; readonly targets: ReadonlySet<string> },
): readonly ChangedScript[] {
  const name = posix.basename(path);
  if (makefiles.has(name)) return changedTargets({ before, after }, 'make', called.targets);
  if (justfiles.has(name)) return changedTargets({ before, after }, 'just', called.targets);
  const [old, now] = [readScripts(path, before), readScripts(path, after)];
  return [...called.scripts].flatMap((script) => {
    const [was, is] = [old.get(script), now.get(script)];
    const isHook = /^(?:pre|post)./.test(script) && old.has(script.replace(/^(?:pre|post)/, ''));
    if (was === is || (was === undefined && !isHook)) return [];
    return [{ name: `the script ${JSON.stringify(script)}`, was, is }];
  });
}

function changedTargets(
  { before, after }: Versions,
  program: 'make' | 'just',
  called: ReadonlySet<string>,
): readonly ChangedScript[] {
  const [old, now] = [readTargets(before), readTargets(after)];
  const names = [...called].flatMap((name) => (name.startsWith(`${program} `) ? [name.slice(program.length + 1)] : []));
  return reachable(
    names.map((name) => (name === '' ? ([...old.keys()][0] ?? '') : name)),
    old,
  ).flatMap((name) => {
    const [was, is] = [old.get(name), now.get(name)];
    return was === undefined || was === is ? [] : [{ name: `the target ${JSON.stringify(name)}`, was, is }];
  });
}

/** Targets with those that they name as theirs. */
function reachable(names: readonly string[], targets: ReadonlyMap<string, string>): readonly string[] {
  const all = new Set<string>();
  const visit = (name: string): void => {
    const recipe = targets.get(name);
    if (recipe === undefined || all.has(name)) return;
    all.add(name);
    for (const word of recipe.split(/[\s:]+/)) visit(word);
  };
  for (const name of names) visit(name);
  return [...all];
}

/** Files that a Makefile takes in, as they are written. */
export function includesOf(text: string): readonly string[] {
  const lines = withoutComments(text, 'hash').matchAll(/^[ \t]*[-s]?include[ \t]+([^\n]+)$/gm);
  return [...lines].flatMap((match) => (match[1] ?? '').trim().split(/\s+/)).map((path) => posix.normalize(path));
}

/** Targets with their line and what stands indented below it. */
function readTargets(text: string): ReadonlyMap<string, string> {
  const targets = new Map<string, string>();
  let current: string | null = null;
  for (const line of withoutComments(text, 'hash').split('\n')) {
    const head = /^@?([\w.][\w./-]*)(?:[ \t][^:=]*)?:(?![=])/.exec(line)?.[1];
    if (head !== undefined && head !== '.PHONY') {
      current = head;
      targets.set(current, `${targets.get(current) ?? ''}${line.trim()}\n`);
    } else if (/^[ \t]+\S/.test(line) && current !== null) {
      targets.set(current, `${targets.get(current) ?? ''}${line.trim()}\n`);
    } else if (line.trim() !== '') current = null;
  }
  return targets;
}

/**
 * Names parts that configure runners, and are not what they were. A new one only speaks of a runner that gates already call by
 * name, and that ran without it.
 */
export function changedSections(
  path: string,
  { before, after }: Versions,
  runners: ReadonlySet<string>,
): readonly string[] {
  const [old, now] = [partsOf(path, before), partsOf(path, after)];
  return [...new Set([...old.keys(), ...now.keys()])].filter((name) => {
    if (old.get(name) === now.get(name)) return false;
    return old.has(name) || name.split(/[^\w-]+/).some((word) => word !== '' && runners.has(word));
  });
}

/** The parts of a manifest that configure runners, by name. */
function partsOf(path: string, text: string): ReadonlyMap<string, string> {
  const name = posix.basename(path);
  if (viteConfig.test(name)) {
    const block = blockOf(withoutComments(text, 'js'), /\btest\s*:\s*(?=\{)/);
    return new Map(block === null ? [] : [['`test`, which vitest reads,', block]]);
  }
  if (name === 'package.json') {
    const value = readJson(text);
    const keys = runnerKeys.filter((key) => value[key] !== undefined);
    return new Map(keys.map((key) => [JSON.stringify(key), JSON.stringify(value[key])]));
  }
  const wanted = sectioned[name];
  const sections = wanted === undefined ? [] : [...readSections(text)].filter(([section]) => wanted.test(section));
  return new Map(sections.map(([section, body]) => [`[${section}]`, body]));
}

/** What stands in braces behind a head, without its blanks; to the end where they are never closed. */
function blockOf(text: string, head: RegExp): string | null {
  const found = head.exec(text);
  if (found === null) return null;
  const start = found.index + found[0].length;
  let depth = 0;
  let end = start;
  for (; end < text.length; end += 1) {
    if (text[end] === '{') depth += 1;
    else if (text[end] === '}' && (depth -= 1) === 0) break;
  }
  return text.slice(start, end).replace(/\s+/g, '');
}

/** Sections of TOML and of ini files: their lines without blanks and comments. */
function readSections(text: string): ReadonlyMap<string, string> {
  const sections = new Map<string, string>();
  let current = '';
  for (const line of withoutComments(text, 'hash').split('\n')) {
    const head = /^\[{1,2}([^\]]+)\]{1,2}/.exec(line)?.[1];
    if (head !== undefined) current = head.trim();
    else if (line.trim() !== '') sections.set(current, `${sections.get(current) ?? ''}${line.trim()}\n`);
  }
  return sections;
}
