/** The files that `giro init` writes, as text. Pure. */
import { claudeCommand } from '../config/driver-table.js';
import { printable } from '../platform/text.js';
import { detectTests, type Found, type Project } from './detect.js';
import type { HookGate } from './detect-hooks.js';

/** What the policy is made from. */
export interface PolicyParts {
  readonly tests: readonly Found[];
  readonly setup: Found | undefined;
  readonly hooks: readonly HookGate[];
  readonly hasClaude: boolean;
  /** Whether npm or its like installs what the project needs. */
  readonly isNode: boolean;
}

const exampleRubric =
  'What the Issue asks for is done, and nothing else. Each new behaviour has a test that fails without it.';

/** Writes `giro.toml`: short, commented, and valid as it stands. */
export function policyText({ tests, setup, hooks, hasClaude, isNode }: PolicyParts): string {
  return [
    '# What giro may run, and how often. Read from your files when a run starts, never from what an agent changed.',
    '',
    '[driver]',
    'default = "command"',
    '',
    ...driverLines(hasClaude, tests[0]?.command ?? 'npm test'),
    '',
    '# Gates: an attempt counts only if every one of them passes on a clean checkout of its commit, and again on the',
    '# merged tree before it lands.',
    '[verify]',
    ...testLines(tests),
    ...hooks.flatMap(hookLines),
    '# What no command can say, a judge can: a fresh call of the agent above that sees nothing but the work, once an attempt.',
    `# review = { kind = "prompt", rubric = ${tomlString(exampleRubric)} }`,
    '',
    '[worktree]',
    ...setupLines(setup, isNode),
    '',
    '[budget]',
    '# Attempts for each Issue before it is handed to a human.',
    'attempts = 3',
    '',
  ].join('\n');
}

function driverLines(hasClaude: boolean, test: string): readonly string[] {
  const example = [
    '# Any program: it gets the prompt on stdin, works in the current folder, and exits 0 when it is done. A path with a',
    '# slash starts at the root of the repository. Names in `env` are passed on besides PATH, HOME and the like.',
    '[driver.command]',
  ];
  if (!hasClaude) return [...example, 'run = ["./agent.sh"]', '# env = ["MY_API_KEY"]'];
  return [
    ...example,
    '# It edits files and runs commands without asking; settings and servers that the repository brings along are not',
    `# loaded, since they run code. Allow fewer commands with, say, ${tomlString(`Edit,Write,Read,Bash(${test})`)} at the end.`,
    `run = [${claudeCommand.map(tomlString).join(', ')}]`,
    '# env = ["ANTHROPIC_API_KEY"]',
  ];
}

function testLines([first, ...others]: readonly Found[]): readonly string[] {
  if (first === undefined) {
    return [
      '# No test command was found. giro starts only when at least one gate is named here, such as',
      '# test = "make check"',
    ];
  }
  return [
    `test = ${tomlString(first.command)} # from ${printable(first.from)}`,
    ...others.map(({ command, from }) => `# ${nameFor(from)} = ${tomlString(command)} # from ${printable(from)}`),
  ];
}

function hookLines({ name, command, from, caution }: HookGate): readonly string[] {
  const why = caution === undefined ? 'Uncomment it if it must hold here too.' : `${caution}.`;
  return [
    `# ${printable(from)} is a git hook, and giro runs no hook. ${printable(why)}`,
    `# ${name} = ${tomlString(command)}`,
  ];
}

function setupLines(setup: Found | undefined, isNode: boolean): readonly string[] {
  const lines = ['# Makes a fresh checkout ready for agents and gates.'];
  if (setup === undefined)
    return [...lines, isNode ? '# setup = "npm ci" # needs a lock file that is committed' : '# setup = "make deps"'];
  return [...lines, `setup = ${tomlString(setup.command)} # from ${setup.from}`];
}

function nameFor(from: string): string {
  return `test-${from.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`;
}

/** A basic string of TOML is a string of JSON, but for DEL. */
function tomlString(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}

/** The example Spec that shows the format and can be run as it is: two small Issues, the second after the first. */
export function exampleFiles(project: Project): readonly { readonly path: string; readonly text: string }[] {
  const [test] = detectTests(project);
  const readme = [...project.names].sort().find((name) => /^readme(?:\.\w+)?$/i.test(name)) ?? 'README.md';
  const folder = 'docs/specs/example';
  return [
    { path: `${folder}/issues/01-how-to-test.md`, text: firstIssue(test) },
    { path: `${folder}/issues/02-link-from-readme.md`, text: secondIssue(readme) },
    // Last: a Spec that is there is a Spec that is complete.
    { path: `${folder}/SPEC.md`, text: exampleSpec(project) },
  ];
}

function exampleSpec({ name }: Project): string {
  return `---
state: draft
---

# A page for newcomers

Somebody who clones ${printable(name)} for the first time finds out in one minute how to set it up and how to run its tests.

## Acceptance

- \`docs/development.md\` says so in commands that can be copied.
- The readme links to it.

<!-- This is an example: change it, or replace it by what you want. Issues are the files in issues/. -->
`;
}

function firstIssue(test: Found | undefined): string {
  const command =
    test === undefined
      ? 'the command that runs the tests, or one sentence that there are none yet'
      : `the command that runs the tests (\`${test.command}\`)`;
  return `---
state: ready
touches: ["docs/development.md"]
---

# Say how to set up and test the project

Write \`docs/development.md\`, or extend it where it exists. At most 40 lines:

- what must be installed, found out from the files of the project
- the commands that set up a fresh clone
- ${command}

Change no other file.
`;
}

function secondIssue(readme: string): string {
  return `---
state: ready
depends-on: [01]
touches: ["${readme}"]
---

# Link the page from the readme

Add one line to \`${readme}\`, near its end, that links to \`docs/development.md\`. If there is no readme, write one with the
project's name and this link. Change no other file.
`;
}
