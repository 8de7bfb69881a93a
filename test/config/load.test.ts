import { describe, expect, test } from 'vitest';
import { renderDiagnostics } from '../../src/config/diagnostic.js';
import { loadPolicy, type PolicyRequest } from '../../src/config/load.js';
import type { Diagnostic } from '../../src/failure.js';
import type { Policy } from '../../src/policy.js';
import { underlined } from './folder.js';

const base = '[driver]\ndefault = "command"\n[driver.command]\nrun = ["./agent"]\n';
const minimal = `${base}[verify]\ntest = "npm test"\n`;

function load(text: string, more: Partial<PolicyRequest> = {}) {
  return loadPolicy({
    text,
    file: 'giro.toml',
    repository: '/home/me/app',
    processors: 8,
    own: { HOME: '/home/me' },
    ...more,
  });
}

function policy(text: string, more: Partial<PolicyRequest> = {}): Policy {
  const result = load(text, more);
  if (!result.ok) throw new Error(renderDiagnostics(result.failure.diagnostics));
  return result.value;
}

function mistakes(text: string, more: Partial<PolicyRequest> = {}): readonly Diagnostic[] {
  const result = load(text, more);
  return result.ok ? [] : result.failure.diagnostics;
}

function one(text: string, more: Partial<PolicyRequest> = {}): Diagnostic {
  const [found, ...others] = mistakes(text, more);
  expect(others).toEqual([]);
  if (found === undefined) throw new Error('no mistake was found');
  return found;
}

const silent = { cost: false, tokens: false };
const unlimited = {
  issue: { timeMs: null, tokens: null, costUsd: null },
  spec: { timeMs: null, tokens: null, costUsd: null },
  run: { tokens: null, costUsd: null },
  unknownCost: 'refuse',
};

describe('a valid giro.toml', () => {
  test('the smallest one gets every default', () => {
    expect(policy(minimal)).toEqual({
      drivers: {
        default: 'command',
        byName: new Map([
          ['command', { kind: 'command', name: 'command', run: ['./agent'], env: [], reports: silent }],
        ]),
      },
      roles: { worker: 'command', judge: 'command', planner: 'command' },
      budget: {
        attempts: 3,
        attemptTimeoutMs: 1_800_000,
        rounds: 3,
        failures: 3,
        noProgress: 3,
        blocked: 1,
        ...unlimited,
      },
      limits: {
        agents: 4,
        gates: 8,
        graceMs: 10_000,
        processes: 4096,
        memoryBytes: null,
        files: 200,
        lines: 10_000,
        fileBytes: 5 * 1024 * 1024,
      },
      gates: [
        {
          name: 'test',
          kind: 'command',
          run: 'npm test',
          on: ['issue', 'integration', 'spec'],
          timeoutMs: 900_000,
          env: [],
          afterGreen: false,
          rules: { minTests: null, mustMatch: null, mustNotMatch: null, junit: null },
        },
      ],
      evidence: { baseline: 'fail', flaky: 'fail', proof: null },
      integrate: { base: 'never' },
      worktree: {
        git: 'linked',
        setupTimeoutMs: 900_000,
        inputs: [
          'package-lock.json',
          'pnpm-lock.yaml',
          'yarn.lock',
          'bun.lock',
          'Cargo.lock',
          'go.sum',
          'poetry.lock',
          'uv.lock',
          'requirements*.txt',
        ],
        keep: ['node_modules', '.venv', 'venv', 'vendor/bundle', 'target'],
        copy: [],
        link: [],
      },
      protect: { paths: [], tests: [], assertions: [], scope: 'open' },
      digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    });
  });

  test('every key is read', () => {
    const text = `
[driver]
default = "fast"
[driver.fast]
kind = "command"
run = ["claude", "-p"]
env = ["ANTHROPIC_API_KEY"]
[driver.claude]
kind = "command"
run = ["claude"]
[driver.scripted]
script = "demo/script.json"
[roles]
worker = "claude"
judge = "fast"
planner = "fast"
[budget]
attempts = 5
attempt-timeout = "1h30m"
rounds = 1
failures = 2
no-progress = 4
blocked = 2
[limits]
agents = 16
gates = 2
gate-timeout = "5m"
grace = "500ms"
processes = 512
memory = "8GB"
files = 50
lines = 100000
file-size = "1.5MB"
[verify]
lint = "npm run lint"
[verify.slow]
kind = "command"
run = '''
# build, then test
make test
'''
on = ["spec", "integration", "spec"]
timeout = "1h"
env = ["CI_TOKEN"]
[verify.named]
run = "make named"
on = []
[worktree]
root = "~/.cache/giro/trees"
git = "linked"
setup = "npm ci"
setup-timeout = "2m"
inputs = ["package-lock.json"]
keep = []
copy = [".env.test"]
link = ["data"]
[protect]
paths = ["migrations/**"]
tests = ["checks/**"]
assertions = ['\\bensure\\(']
scope = "strict"
`;
    const value = policy(text, { worktreeInclude: '# secrets\n.env\n/config/local.json\r\ncache/\n\n' });
    expect(value.roles.worker).toBe('claude');
    expect([...value.drivers.byName.values()]).toEqual([
      { kind: 'command', name: 'fast', run: ['claude', '-p'], env: ['ANTHROPIC_API_KEY'], reports: silent },
      { kind: 'command', name: 'claude', run: ['claude'], env: [], reports: silent },
      { kind: 'scripted', name: 'scripted', script: 'demo/script.json', env: [], reports: silent },
    ]);
    expect(value.budget).toEqual({
      attempts: 5,
      attemptTimeoutMs: 5_400_000,
      rounds: 1,
      failures: 2,
      noProgress: 4,
      blocked: 2,
      ...unlimited,
    });
    expect(value.limits).toEqual({
      agents: 16,
      gates: 2,
      graceMs: 500,
      processes: 512,
      memoryBytes: 8 * 1024 ** 3,
      files: 50,
      lines: 100_000,
      fileBytes: 1_572_864,
    });
    expect(value.protect).toEqual({
      paths: ['migrations/**'],
      tests: ['checks/**'],
      assertions: ['\\bensure\\('],
      scope: 'strict',
    });
    expect(value.gates.map(({ name, on, timeoutMs, env }) => ({ name, on, timeoutMs, env }))).toEqual([
      { name: 'lint', on: ['issue', 'integration', 'spec'], timeoutMs: 300_000, env: [] },
      { name: 'slow', on: ['spec', 'integration'], timeoutMs: 3_600_000, env: ['CI_TOKEN'] },
      { name: 'named', on: [], timeoutMs: 300_000, env: [] },
    ]);
    expect(value.worktree).toEqual({
      root: '/home/me/.cache/giro/trees',
      git: 'linked',
      setup: 'npm ci',
      setupTimeoutMs: 120_000,
      inputs: ['package-lock.json'],
      keep: [],
      copy: ['.env.test', '**/.env', '**/.env/**', 'config/local.json', 'config/local.json/**', '**/cache/**'],
      link: ['data'],
    });
  });

  test('the digest follows what the file says, not how', () => {
    const [first, same, other] = [
      policy(minimal),
      policy(
        `\uFEFF# why\r\n[verify]\r\ntest = 'npm test'\r\n${base.replaceAll('\n', '\r\n')}[roles]\r\nworker = "command"\r\n`,
      ),
      policy(`${minimal}[budget]\nattempts = 4\n`),
    ].map((value) => value.digest);
    expect(same).toBe(first);
    expect(other).not.toBe(first);
    const more = '[driver.other]\nkind = "command"\nrun = ["x"]\n';
    expect(policy(more + minimal).digest).toBe(policy(minimal + more).digest);
    expect(policy(more + minimal).digest).not.toBe(first);
  });
});

describe('C051 no gate, or an empty one', () => {
  test.each([
    ['no table', '', undefined, 'no gate is configured: nothing would be verified'],
    ['an empty table', '[verify]\n', 'verify', 'no gate is configured: nothing would be verified'],
    [
      'an empty text',
      '[verify]\ntest = ""\n',
      '""',
      '`test` must be a shell command, such as "npm test", not an empty text',
    ],
    [
      'blanks',
      '[verify]\ntest = "   "\n',
      '"   "',
      '`test` must be a shell command, such as "npm test", not an empty text',
    ],
    [
      'a comment',
      '[verify]\ntest = "# todo"\n',
      '"# todo"',
      '`test` must be a shell command, such as "npm test", not `"# todo"`',
    ],
    [
      'comments alone',
      "[verify.test]\nrun = '''\n# a\n\n  # b'''\n",
      "'''",
      '`run` must be a shell command, such as "npm test", not `"# a\\n\\n  # b"`',
    ],
    ['no run', '[verify.test]\ntimeout = "1m"\n', 'verify.test', '`run` is missing'],
    ['an unknown kind', '[verify.test]\nkind = "comand"\nrun = "x"\n', '"comand"', 'unknown kind of gate: `comand`'],
    [
      'judges alone, which are due on Issues only',
      '[verify.test]\nkind = "prompt"\nrubric = "x"\n',
      'verify.test',
      'no gate has `integration` in its `on`: what lands would not be verified',
    ],
    [
      'a list',
      '[verify]\ntest = ["npm", "test"]\n',
      '["npm", "test"]',
      '`test` must be a shell command or a table, not a list',
    ],
    [
      'no integration',
      '[verify.test]\nrun = "x"\non = ["issue"]\n',
      'verify.test',
      'no gate has `integration` in its `on`: what lands would not be verified',
    ],
    [
      'nothing on',
      '[verify]\n[verify.test]\nrun = "x"\non = []\n',
      'verify',
      'no gate has `integration` in its `on`: what lands would not be verified',
    ],
  ])('%s is refused', (_, text, mark, message) => {
    const found = one(base + text);
    expect(found.message).toBe(message);
    expect(underlined(found)).toBe(mark);
    expect(found.hint ?? found.message).toMatch(/npm test|command/);
  });

  test.each([
    ['Test = "x"\n', 'Test', '`Test` cannot be the name of a gate'],
    ['red-green = "x"\n', 'red-green', "`red-green` is giro's own gate, which [evidence] proof asks for"],
    ['"a b" = "x"\n', '"a b"', '`a b` cannot be the name of a gate'],
    [`${'a'.repeat(51)} = "x"\n`, 'a'.repeat(51), `\`${'a'.repeat(51)}\` cannot be the name of a gate`],
    [
      'test = {run = "x", on = ["isue"]}\n',
      '"isue"',
      'entry 1 of `on` must be one of issue, integration, spec, not `"isue"`',
    ],
    ['test = {run = "x", on = "issue"}\n', '"issue"', '`on` must be a list of issue, integration, spec, not `"issue"`'],
    ['test = {run = "x", timeout = 30}\n', '30', '`timeout` must be a duration of at most 7 days, not `30`'],
    ['test = {run = "x", timeout = "0s"}\n', '"0s"', '`timeout` must be a duration of at most 7 days, not `"0s"`'],
    ['test = {run = "x", min-tests = 0}\n', '0', '`min-tests` must be a whole number between 1 and 1000000, not `0`'],
    [
      'test = {run = "x", must-match = "(a"}\n',
      '"(a"',
      '`must-match` must be a regular expression of JavaScript, not `"(a"`',
    ],
    [
      'test = {run = "x", must-not-match = ""}\n',
      '""',
      '`must-not-match` must be a regular expression, not an empty text',
    ],
    [
      'test = {run = "x", junit = "../out.xml"}\n',
      '"../out.xml"',
      '`junit` must be a path inside the repository (it leaves the repository with ..), not `"../out.xml"`',
    ],
    [
      'test = {run = "x", env = ["A=b"]}\n',
      '"A=b"',
      'entry 1 of `env` must be the name of an environment variable, without a value, not `"A=b"`',
    ],
    ['test = {run = "x", timout = "30s"}\n', 'timout', 'unknown key `timout` in [verify.test]'],
    ['test.run = "x"\ntest.onn = []\n', 'test.onn', 'unknown key `onn` in [verify.test]'],
  ])('a gate of %j is refused', (text, mark, message) => {
    const found = one(`${base}[verify]\n${text}`);
    expect(found.message).toBe(message);
    expect(underlined(found)).toBe(mark);
  });
});

describe('[driver] and [roles]', () => {
  const verify = '[verify]\ntest = "npm test"\n';

  test.each([
    ['', undefined, 'no driver is configured: giro has to be told which program does the work'],
    ['driver = "command"\n', '"command"', '`driver` must be a table'],
    ['[driver]\n', 'driver', '`default` is missing: it names the driver that does the work'],
    ['[driver]\ndefault = 1\n', '1', '`default` must be the name of a driver, not `1`'],
    ['[driver]\ndefault = "command"\n', '"command"', 'there is no [driver.command]'],
    [
      '[driver]\ndefault = "comand"\n[driver.command]\nrun = ["x"]\n',
      '"comand"',
      '`default` names a driver that is not configured: `comand`',
    ],
    [
      '[driver]\ndefault = "constructor"\n'.replace('constructor', 'toString'),
      '"toString"',
      '`default` names a driver that is not configured: `toString`',
    ],
    [
      '[driver]\ndefault = "claude"\n',
      '"claude"',
      'the claude driver is not available in this version; drive it through the command driver',
    ],
    [
      '[driver]\ndefault = "x"\n[driver.x]\nkind = "codex"\n',
      '"codex"',
      'the codex driver is not available in this version; drive it through the command driver',
    ],
    ['[driver]\ndefault = "x"\n[driver.x]\nrun = ["x"]\n', 'driver.x', '[driver.x] has no `kind`'],
    ['[driver]\ndefault = "x"\n[driver.x]\nkind = "comand"\n', '"comand"', 'unknown kind of driver: `"comand"`'],
    ['[driver]\ndefault = "x"\n[driver.x]\nkind = 3\n', '3', 'unknown kind of driver: `3`'],
    ['[driver]\ndefault = "command"\n[driver.command]\n', 'driver.command', '`run` is missing'],
    [
      '[driver]\ndefault = "command"\n[driver.command]\nrun = "claude -p"\n',
      '"claude -p"',
      '`run` must be a list of texts, program first; it is started without a shell',
    ],
    [
      '[driver]\ndefault = "command"\n[driver.command]\nrun = []\n',
      '[]',
      '`run` must be a list of texts, program first, such as ["./my-agent", "--headless"], not an empty list',
    ],
    [
      '[driver]\ndefault = "command"\n[driver.command]\nrun = ["", "a"]\n',
      '""',
      'entry 1 of `run` must be a text that is not empty, not an empty text',
    ],
    [
      '[driver]\ndefault = "command"\n[driver.command]\nrun = ["a"]\nscript = "x"\n',
      'script',
      'unknown key `script` in [driver.command]',
    ],
    ['[driver]\ndefault = "scripted"\n[driver.scripted]\n', 'driver.scripted', '`script` is missing'],
    [
      '[driver]\ndefault = "scripted"\n[driver.scripted]\nscript = "../x"\n',
      '"../x"',
      '`script` must be a path inside the repository (it leaves the repository with ..), not `"../x"`',
    ],
    [
      '[driver]\ndefault = "command"\nrun = ["x"]\n[driver.command]\nrun = ["a"]\n',
      'run',
      'unknown key `run` in [driver]',
    ],
    [
      '[driver]\ndefault = "command"\n[driver.command]\nrun = ["a"]\n[driver."a b"]\nkind = "command"\nrun = ["b"]\n',
      'driver."a b"',
      '`a b` cannot be the name of a driver',
    ],
    [`${base}[roles]\nworker = "comand"\n`, '"comand"', '`worker` must be one of command, not `"comand"`'],
    [`${base}[roles]\nworkr = "command"\n`, 'workr', 'unknown key `workr` in [roles]'],
  ])('%j is refused', (text, mark, message) => {
    const found = one(text + verify);
    expect(found.message).toBe(message);
    expect(underlined(found)).toBe(mark);
    if (!message.includes(' must ') || message.includes('shell')) expect(found.hint).toBeTruthy();
  });

  test('a driver of later is shown as a command', () => {
    const found = one(`[driver]\ndefault = "claude"\n[driver.claude]\nmodel = "opus"\n${verify}`);
    expect(found).toMatchObject({
      line: 3,
      column: 2,
      hint: expect.stringContaining('[driver.claude]\nkind = "command"\nrun = ["claude", "-p", ') as unknown,
    });
  });
});

describe('[budget], [limits], [worktree] and the rest', () => {
  test.each([
    ['[budget]\nattempts = 0\n', '0', '`attempts` must be a whole number between 1 and 100, not `0`'],
    ['[budget]\nattempts = 101\n', '101', '`attempts` must be a whole number between 1 and 100, not `101`'],
    ['[budget]\nattempts = 1.5\n', '1.5', '`attempts` must be a whole number between 1 and 100, not `1.5`'],
    ['[budget]\nattempts = "3"\n', '"3"', '`attempts` must be a whole number between 1 and 100, not `"3"`'],
    ['[budget]\nattempts = inf\n', 'inf', '`attempts` must be a whole number between 1 and 100, not `Infinity`'],
    ['[budget]\nattempts = nan # x\n', 'nan', '`attempts` must be a whole number between 1 and 100, not `NaN`'],
    [
      '[budget]\nattempts = 1979-05-27 07:32:00\n',
      '1979-05-27 07:32:00',
      '`attempts` must be a whole number between 1 and 100, not a date',
    ],
    [
      '[budget]\nattempt-timeout = "30"\n',
      '"30"',
      '`attempt-timeout` must be a duration of at most 7 days, not `"30"`',
    ],
    ['[budget]\nattemps = 3\n', 'attemps', 'unknown key `attemps` in [budget]'],
    ['budget = 3\n', '3', '`budget` must be a table, not `3`'],
    ['[limits]\nagents = -1\n', '-1', '`agents` must be a whole number between 1 and 256, not `-1`'],
    ['[limits]\ngrace = 10\n', '10', '`grace` must be a duration of at most 7 days, not `10`'],
    ['[limits]\nconcurrency = 3\n', 'concurrency', 'unknown key `concurrency` in [limits]'],
    ['[worktree]\nroot = "trees"\n', '"trees"', '`root` must be absolute or start with ~/, not MARK'],
    ['[worktree]\nroot = "~other/x"\n', '"~other/x"', '`root` must be absolute or start with ~/, not MARK'],
    ['[worktree]\nroot = "/home/me/app"\n', '"/home/me/app"', '`root` must be outside the repository, not MARK'],
    [
      '[worktree]\nroot = "/home/me/x/../app/trees"\n',
      '"/home/me/x/../app/trees"',
      '`root` must be outside the repository, not MARK',
    ],
    ['[worktree]\nroot = "~/app/..trees"\n', '"~/app/..trees"', '`root` must be outside the repository, not MARK'],
    ['[worktree]\nroot = ""\n', '""', '`root` must be the path of a folder, not an empty text'],
    ['[worktree]\ngit = "sealed"\n', '"sealed"', '`git` must be "linked", not MARK'],
    ['[worktree]\ngit = "copied"\n', '"copied"', '`git` must be "linked", not MARK'],
    ['[worktree]\nsetup = ""\n', '""', '`setup` must be a shell command, such as "npm ci", not an empty text'],
    [
      '[worktree]\nsetup = ["npm", "ci"]\n',
      '["npm", "ci"]',
      '`setup` must be a shell command, such as "npm ci", not a list',
    ],
    ['[worktree]\ncopy = ".env"\n', '".env"', '`copy` must be a list of texts, such as [".env.test"], not `".env"`'],
    [
      '[worktree]\ncopy = ["/etc/passwd"]\n',
      '"/etc/passwd"',
      'entry 1 of `copy` must be a path inside the repository (it is not relative to the repository), not `"/etc/passwd"`',
    ],
    [
      '[worktree]\nlink = ["a", "b/../../c"]\n',
      '"b/../../c"',
      'entry 2 of `link` must be a path inside the repository (it leaves the repository with ..), not `"b/../../c"`',
    ],
    [
      '[worktree]\nlink = ["."]\n',
      '"."',
      'entry 1 of `link` must be a path inside the repository (it is empty), not `"."`',
    ],
    [
      '[worktree]\nkeep = [".git/hooks"]\n',
      '".git/hooks"',
      'entry 1 of `keep` must be a path inside the repository (it reaches into .git), not `".git/hooks"`',
    ],
    ['[sandbox]\nx = 1\n', 'sandbox', '[sandbox] is not available in this version'],
    ['[[notify]]\nx = 1\n', 'notify', '`notify` is not available in this version'],
    ['[verfy]\ntest = "x"\n', 'verfy', 'unknown key `verfy`'],
    ['["verify "]\n', '"verify "', 'unknown key `verify `'],
  ])('%j is refused', (text, mark, message) => {
    const found = one(text.startsWith('[') ? minimal + text : text + minimal);
    expect(found.message).toBe(message.replace('MARK', `\`${mark}\``));
    expect(underlined(found)).toBe(mark);
  });

  test('a home folder that is not known is said', () => {
    expect(one(`${minimal}[worktree]\nroot = "~/x"\n`, { own: {} }).message).toBe(
      '`root` must be an absolute path while HOME is not set, not `"~/x"`',
    );
  });

  test('a folder beside the repository with its name in front is fine', () => {
    expect(policy(`${minimal}[worktree]\nroot = "/home/me/app-trees/"\n`).worktree.root).toBe('/home/me/app-trees');
    expect(policy(`${minimal}[worktree]\nroot = "~"\n`, { repository: '/srv/app' }).worktree.root).toBe('/home/me');
  });

  test('.worktreeinclude is checked line by line', () => {
    const found = mistakes(minimal, { worktreeInclude: '.env\n!.env.prod\n../secret\n/.git/config\n/\n' });
    expect(found.map((d) => [d.file, d.line, d.message])).toEqual([
      ['.worktreeinclude', 2, '`!.env.prod` takes a pattern back, which is not supported'],
      ['.worktreeinclude', 3, '`../secret` leaves the repository with ..'],
      ['.worktreeinclude', 4, '`/.git/config` reaches into .git'],
      ['.worktreeinclude', 5, '`/` is empty'],
    ]);
  });

  test('a name that is none hides no other mistake of its table', () => {
    const found = mistakes(
      '[driver]\ndefualt = "a"\n[driver."a b"]\nkind = "command"\nrun = ["x"]\nevn = []\n' +
        '[verify.Bad_Name]\nrun = "true"\non = ["isue"]\ntimeout = "5x"\n',
    );
    expect(found.map((one) => [one.line, one.message.slice(0, 36), one.hint?.split('\n', 1)[0]])).toEqual([
      [1, '`default` is missing: it names the d', '[driver]'],
      [2, 'unknown key `defualt` in [driver]', 'did you mean `default`? allowed: default'],
      [3, '`a b` cannot be the name of a driver', 'use letters, digits, - and _, at most 50'],
      [6, 'unknown key `evn` in [driver."a b"]', expect.stringContaining('did you mean `env`?')],
      [7, '`Bad_Name` cannot be the name of a g', 'use a-z, 0-9 and dashes, at most 50 characters'],
      [9, 'entry 1 of `on` must be one of issue', 'did you mean `issue`?'],
      [10, '`timeout` must be a duration of at m', expect.stringContaining('units')],
    ]);
  });

  test.each([
    ['a = \n', 1, 5],
    ['[driver]\r\ndefault = "x\r\n', 2, 13],
    ['a = 1\na = 2\n', 2, 1],
    ['constructor = 1\n', 1, 1],
    [`a = ${'['.repeat(5_000)}`, 1, 37],
  ])('broken TOML %j is refused at its place', (text, line, column) => {
    expect(one(text)).toMatchObject({
      line,
      column,
      message: expect.stringMatching(/^this is not valid TOML: [^\n]+$/) as string,
      hint: expect.stringContaining('texts in quotes') as string,
    });
  });

  test.each([
    ['[limits]\nfiles = 1001', '`files` must be a whole number between 1 and 1000, not `1001`'],
    ['[limits]\nprocesses = 15', '`processes` must be a whole number between 16 and 16384, not `15`'],
    ['[limits]\nprocesses = 16385', '`processes` must be a whole number between 16 and 16384, not `16385`'],
    ['[limits]\nmemory = "1025GB"', '`memory` must be a size of at most 1024GB, not `"1025GB"`'],
    ['[limits]\nmemory = "80%"', '`memory` must be a size of at most 1024GB, not `"80%"`'],
    ['[limits]\nlines = 100001', '`lines` must be a whole number between 1 and 100000, not `100001`'],
    ['[limits]\nfile-size = "101MB"', '`file-size` must be a size of at most 100MB, not `"101MB"`'],
    ['[limits]\nfile-size = "1GB"', '`file-size` must be a size of at most 100MB, not `"1GB"`'],
    ['[limits]\nfile-size = 5', '`file-size` must be a size of at most 100MB, not `5`'],
    ['[protect]\nscope = "off"', '`scope` must be one of open, strict, not `"off"`'],
    ['[protect]\npaths = ["../x"]', 'entry 1 of `paths` must be a path inside the repository'],
    ['[protect]\nassertions = ["("]', 'entry 1 of `assertions` must be a regular expression, not `"("`'],
    ['[protect]\nassertions = ["a*"]', 'that does not match nothing at all'],
    ['[protect]\nguards = false', 'unknown key `guards` in [protect]'],
  ])('%j would loosen what guards hold, and is refused', (table, message) => {
    expect(one(`${minimal}\n${table}\n`).message).toContain(message);
  });

  test('[evidence] says what counts, and nothing else can stand there', () => {
    const evidence = '[evidence]\nbaseline = "allow"\nflaky = "warn"\nproof = "red-green"\n';
    expect(policy(minimal + evidence).evidence).toEqual({ baseline: 'allow', flaky: 'warn', proof: 'red-green' });
    expect(one(`${minimal}[evidence]\nbaseline = "off"\n`).message).toBe(
      '`baseline` must be one of fail, allow, not `"off"`',
    );
    expect(one(`${minimal}[evidence]\nflake = "warn"\n`).message).toBe('unknown key `flake` in [evidence]');
  });

  test('all mistakes of all tables come at once, in the order of the file', () => {
    const found = mistakes(`
[verify]
test = ""
lint = { run = "x", on = ["isue", "spec"], timeout = 5 }

[driver]
default = "comand"

[driver.command]
run = "./agent --go"
enw = ["A"]

[budgets]
attempts = 0

[limits]
agents\t=\t0 # too few
`);
    expect(renderDiagnostics(found)).toMatchInlineSnapshot(`
      "giro.toml:3:8: \`test\` must be a shell command, such as "npm test", not an empty text
        3 | test = ""
          |        ^^

      giro.toml:4:27: entry 1 of \`on\` must be one of issue, integration, spec, not \`"isue"\`
        4 | lint = { run = "x", on = ["isue", "spec"], timeout = 5 }
          |                           ^^^^^^
        fix: did you mean \`issue\`?

      giro.toml:4:54: \`timeout\` must be a duration of at most 7 days, not \`5\`
        4 | lint = { run = "x", on = ["isue", "spec"], timeout = 5 }
          |                                                      ^
        fix: write it with units, such as "30s", "5m", "1h30m" or "1d"

      giro.toml:7:11: \`default\` names a driver that is not configured: \`comand\`
        7 | default = "comand"
          |           ^^^^^^^^
        fix: did you mean \`command\`? configured: command

      giro.toml:10:7: \`run\` must be a list of texts, program first; it is started without a shell
        10 | run = "./agent --go"
           |       ^^^^^^^^^^^^^^
        fix: write run = ["./agent", "--go"]

      giro.toml:11:1: unknown key \`enw\` in [driver.command]
        11 | enw = ["A"]
           | ^^^
        fix: did you mean \`env\`? allowed: kind, run, env, reports-cost, reports-tokens

      giro.toml:13:2: unknown key \`budgets\`
        13 | [budgets]
           |  ^^^^^^^
        fix: did you mean \`budget\`? allowed: driver, roles, budget, limits, verify, worktree, protect, evidence, integrate

      giro.toml:17:10: \`agents\` must be a whole number between 1 and 256, not \`0\`
        17 | agents  =   0 # too few
           |             ^

      8 problems in 1 file
      "
    `);
  });
});
