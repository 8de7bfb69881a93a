/**
 * Gate files (DESIGN 8): files of the base that a gate's command names, configuration of test runners, and the scripts of
 * manifests that a gate calls, by value. Who could change them would write their own exam.
 */
import { posix } from 'node:path';
import type { Finding, Oid } from '../issue.js';
import { programsCalled, scriptsCalled, targetsCalled, wordsOf } from './guard-commands.js';
import { textOf, type Content } from './guard-contents.js';
import {
  changedScripts,
  changedSections,
  closureOf,
  includesOf,
  isAppConfig,
  isManifest,
  makefiles,
  readScripts,
  type Versions,
} from './guard-manifests.js';
import { done } from './guard-protected.js';
import {
  guardFinding,
  inIssue,
  type GuardChange,
  type GuardedFile,
  type GuardRule,
  type RuleContext,
} from './guard-rule.js';
import { testFiles } from './guard-shrink.js';

/** Where the scripts are that gates call by name. */
const topManifests = ['package.json', 'deno.json', 'deno.jsonc', 'composer.json'];

/** Files that say how tests are run, by the runner that they belong to. */
const runnerConfigs: readonly (readonly [runner: string, name: RegExp])[] = [
  ['vitest', /^vitest\.(?:config|workspace)(?:\.[\w-]+)?\.[cm]?[jt]s$/],
  ['jest', /^jest(?:\.[\w-]+|-[\w-]+)*\.config(?:\.[\w-]+)?\.(?:[cm]?[jt]s|json)$|^jest\.config\.json$/],
  ['mocha', /^\.mocharc\.(?:[cm]?js|jsonc?|ya?ml)$/],
  ['ava', /^ava\.config\.[cm]?[jt]s$/],
  ['tap', /^\.taprc$/],
  ['karma', /^karma\.conf\.[cm]?[jt]s$/],
  ['playwright', /^playwright(?:-ct)?\.config(?:\.[\w-]+)?\.[cm]?[jt]s$/],
  ['cypress', /^cypress\.config\.[cm]?[jt]s$|^cypress\.json$/],
  ['wdio', /^wdio\.[\w.]*conf\.[cm]?[jt]s$/],
  ['coverage', /^\.(?:nycrc|c8rc)(?:\.json|\.ya?ml)?$|^\.coveragerc$/],
  ['pytest', /^\.?pytest\.(?:ini|toml)$/],
  ['nox', /^noxfile\.py$/],
  ['nextest', /^nextest\.toml$/],
  ['rspec', /^\.rspec$/],
  ['phpunit', /^phpunit(?:\.dist)?\.xml(?:\.dist)?$/],
  ['junit', /^junit-platform\.properties$|^testng\.xml$/],
];

/** Finds changes of gate files. */
export async function gateFileRule(context: RuleContext): Promise<GuardRule> {
  const { work, testsAllow } = context;
  const called = await calledBy(context);
  const languageOf = testFiles(work.policy.protect.tests);
  const findings: Finding[] = [];
  const add = (file: string, message: string): void => {
    findings.push(guardFinding(work, { rule: 'gate-file', file, message, allow: inIssue('tests', file) }));
  };
  return {
    needsBefore: ({ path, oldOid }) => oldOid !== null && isManifest(path),
    see(file) {
      const { change } = file;
      const { path } = change;
      if (testsAllow(path)) return;
      const runner = runnerOf(path);
      if (change.oldOid === null) {
        // The first one of a runner that the gates do not call yet is how a project gets that runner.
        if (runner !== null && called.runners.has(runner))
          add(path, `added, and configures ${runner}, which gates run without it; leave it out`);
        if (isAppConfig(path)) for (const message of sectionMessages(file, called)) add(path, message);
        return;
      }
      const gate = called.files.get(path);
      if (runner !== null)
        add(path, `${done(change)}, though it configures ${runner}, which gates may run; put it back`);
      // A file with tests may grow: what it may not, `shrink` says.
      else if (gate !== undefined && languageOf(path) === null) {
        add(path, `${done(change)}, though the gate ${gate} runs or names it; put it back`);
      }
      if (isManifest(path)) for (const message of manifestMessages(file, called)) add(path, message);
    },
    findings: () => findings,
  };
}

/** The runner that a file configures; `null` when none. */
export function runnerOf(path: string): string | null {
  return runnerConfigs.find(([, name]) => name.test(posix.basename(path)))?.[0] ?? null;
}

interface Called {
  /** By path: the gate that names it. */
  readonly files: ReadonlyMap<string, string>;
  /** Runners that they call by name. */
  readonly runners: ReadonlySet<string>;
  /** Names of manifest scripts. */
  readonly scripts: ReadonlySet<string>;
  readonly targets: ReadonlySet<string>;
}

/** What the gates name and call, also through the scripts of the base. */
async function calledBy({ work, contents }: RuleContext): Promise<Called> {
  const files = new Map<string, string>();
  const scripts = new Set<string>();
  const targets = new Set<string>();
  const runners = new Set<string>();
  const readText = async (path: string): Promise<string> => {
    const oid: Oid | null = await work.base(path);
    return oid === null ? '' : textOf(await contents.of(oid, '100644'));
  };
  const known = new Map<string, string>();
  for (const path of topManifests) {
    for (const [name, script] of readScripts(path, await readText(path))) known.set(name, script);
  }
  for (const { name, ...gate } of work.policy.gates) {
    if (gate.kind !== 'command') continue;
    const { run } = gate;
    for (const word of wordsOf(run)) files.set(word, name);
    const closure = closureOf(scriptsCalled(run), known);
    for (const script of closure) {
      scripts.add(script);
      for (const program of programsCalled(known.get(script) ?? '')) files.set(program, name);
    }
    const commands = [run, ...closure.map((script) => known.get(script) ?? '')];
    if (commands.some((command) => targetsCalled(command).some(({ program }) => program === 'make')))
      for (const makefile of makefiles) for (const path of includesOf(await readText(makefile))) files.set(path, name);
    for (const { program, target } of commands.flatMap(targetsCalled)) targets.add(`${program} ${target}`);
    for (const word of commands.flatMap((command) => command.split(/[^\w.-]+/)))
      runners.add(word.replace(/^py\.test$/, 'pytest'));
  }
  return { files, scripts, targets, runners };
}

function manifestMessages(file: GuardedFile, called: Called): readonly string[] {
  const { change } = file;
  return [
    ...changedScripts(change.path, textsOf(file), called).map(
      ({ name, was, is }) => `${name} is ${shown(is)} instead of ${shown(was)}, though gates call it; put it back`,
    ),
    ...(wasDeleted(change) ? [] : sectionMessages(file, called)),
  ];
}

function sectionMessages(file: GuardedFile, called: Called): readonly string[] {
  return changedSections(file.change.path, textsOf(file), called.runners).map(
    (section) => `${section} is changed, though it says how tests are run; put it back`,
  );
}

function textsOf({ before, after }: GuardedFile): Versions {
  return { before: textIn(before), after: textIn(after) };
}

function wasDeleted(change: GuardChange): boolean {
  return change.status === 'deleted';
}

function textIn(content: Content | null): string {
  return textOf(content).replace(/\r\n/g, '\n');
}

function shown(script: string | undefined): string {
  if (script === undefined) return 'nothing';
  const line = script.trim().replace(/\s*\n\s*/g, ' ; ');
  return JSON.stringify(line.length > 80 ? `${line.slice(0, 80)}...` : line);
}
