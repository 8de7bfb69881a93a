/** Guards on kinds of files, protected paths, gate files, limits and scope, one rule after the other. */
import { describe, expect, test } from 'vitest';
import type { Oid } from '../../src/issue.js';
import { guard, rules, type Files } from './guarded.js';

const source = 'export function login(user) {\n  return user.name === "admin";\n}\nexport const limit = 100;\n';
const link = (data: string) => ({ mode: '120000', data });
const program = (data: string) => ({ mode: '100755', data });

test('plain work has no findings, and reads each changed file once', async () => {
  const reads: Oid[] = [];
  const after = { 'src/a.js': `${source}export const b = 1;\n`, 'src/new.js': source, 'run.sh': program('echo\n') };
  expect(await guard({ 'src/a.js': source, 'src/b.js': 'kept' }, after, { reads })).toEqual([
    expect.objectContaining({ rule: 'deleted', file: 'src/b.js' }),
  ]);
  expect(await guard({ 'src/a.js': source }, after, { reads: reads.splice(0) })).toEqual([]);
  await guard({ 'src/a.js': source }, after, { reads });
  expect(reads).toHaveLength(3);
});

test('a finding says the rule, the file, and how a person can allow it', async () => {
  expect(await guard({ 'src/a.js': source }, {})).toEqual([
    {
      rule: 'deleted',
      file: 'src/a.js',
      message:
        'guard deleted: deleted, though the Issue does not name it; put it back (a person can allow it: touches: ["src/a.js"] in the Issue, or giro answer s1/01-a --accept <id>)',
    },
  ]);
});

test('more than twenty findings of a rule are counted', async () => {
  const files = Object.fromEntries(
    Array.from({ length: 25 }, (_, at) => [`f${String(at)}`, `content ${String(at)}\n`]),
  );
  const findings = await guard(files, {});
  expect(findings).toHaveLength(21);
  expect(findings.at(-1)).toEqual({ rule: 'deleted', message: 'and 5 more of the kind' });
});

describe('deleted', () => {
  test.each([
    ['by its path', ['src/a.js']],
    ['by a folder', ['src']],
    ['by a folder with a slash', ['src/']],
    ['by a pattern', ['src/**']],
  ])('is fine when the Issue names the file %s', async (_, touches) => {
    expect(await rules({ 'src/a.js': source }, {}, { touches })).toEqual([]);
  });

  test('is not covered by a pattern that names everything, or something else', async () => {
    expect(await rules({ 'src/a.js': source }, {}, { touches: ['**', 'src/b.js', 'src/a'] })).toEqual([
      'deleted src/a.js',
    ]);
  });

  test('is not what a move is, nor a move with changes, nor a file split in two, nor two joined', async () => {
    expect(await rules({ 'src/a.js': source }, { 'lib/a.js': source })).toEqual([]);
    expect(await rules({ 'src/a.js': source }, { 'lib/a.js': `import x from 'x';\n${source}` })).toEqual([]);
    const [one, two] = [source, source.replaceAll('login', 'logout').replaceAll('limit', 'roof')];
    expect(await rules({ 'src/a.js': one + two }, { 'src/one.js': one, 'src/two.js': two })).toEqual([]);
    expect(await rules({ 'src/one.js': one, 'src/two.js': two }, { 'src/two.js': two + one })).toEqual([]);
  });

  test('names folders of routers literally', async () => {
    expect(await rules({ 'app/[id]/page.js': source }, {}, { touches: ['app/[id]/**'] })).toEqual([]);
  });

  test('counts for empty files and links too', async () => {
    expect(await rules({ empty: '', link: link('empty') }, {})).toEqual(['deleted empty', 'deleted link']);
  });
});

describe('links, permissions, binaries, pointers', () => {
  const binary = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0, 1]);
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n';

  test('new and changed ones are findings', async () => {
    const before = { 'a.sh': 'echo\n', 'b.sh': program('echo b\n'), to: link('a'), file: 'text\n', 'p.bin': pointer };
    const after = {
      'a.sh': program('echo\n'),
      'b.sh': 'echo b\n',
      to: link('b'),
      file: link('a.sh'),
      'p.bin': `${pointer} `,
      'new.png': binary,
    };
    expect(await rules(before, after)).toEqual([
      'binary new.png',
      'lfs p.bin',
      'mode a.sh',
      'mode b.sh',
      'symlink file',
      'symlink to',
    ]);
    const touches = ['*.sh', 'to', 'file', '**/*.png', 'p.bin'];
    expect(await rules(before, after, { touches })).toEqual([]);
  });

  test('those that stay, move or vanish by the Issue are none, and a new program may be executable', async () => {
    const before = { 'a.png': binary, to: link('a'), 'x.sh': program('x\n') };
    expect(
      await rules(before, { 'b.png': binary, at: link('a'), 'y.sh': program('x\n'), 'z.sh': program('z\n') }),
    ).toEqual([]);
  });
});

describe('protected', () => {
  test('giro.toml and .worktreeinclude, new ones too', async () => {
    expect(
      await rules({ 'giro.toml': 'a' }, { 'giro.toml': 'b', '.worktreeinclude': 'x' }, { tests: ['giro.toml'] }),
    ).toEqual(['protected .worktreeinclude', 'protected giro.toml']);
  });

  test('[protect] paths, changed, added and deleted, whatever the Issue says', async () => {
    const how = {
      protect: { paths: ['db/migrations', '**/*.lock.md'] },
      touches: ['db/migrations/1.sql', 'db/**'],
      tests: ['db/**'],
    };
    const before = { 'db/migrations/1.sql': 'create table one\n', 'db/seed.sql': 'a' };
    expect(
      await rules(before, { 'db/migrations/2.sql': 'drop\n', 'docs/x.lock.md': 'x', 'db/seed.sql': 'b' }, how),
    ).toEqual(['protected db/migrations/1.sql', 'protected db/migrations/2.sql', 'protected docs/x.lock.md']);
  });

  test('the program of a driver and what sets worktrees up, where the base has them', async () => {
    const reports = { cost: false, tokens: false };
    const own = { kind: 'command', name: 'own', run: ['./agent.sh'], env: [], reports } as const;
    const drivers = new Map([['own', own]]);
    const how = { drivers, setup: 'bash scripts/setup.sh && npm ci' };
    const before = { 'agent.sh': 'a', 'scripts/setup.sh': 'a' };
    expect(await rules(before, { 'agent.sh': 'b', 'scripts/setup.sh': 'b' }, how)).toEqual([
      'protected agent.sh',
      'protected scripts/setup.sh',
    ]);
    expect(await rules({}, { 'agent.sh': 'b', 'scripts/setup.sh': 'b' }, how)).toEqual([]);
  });
});

test('rubrics and skills of judges, with what lies beside a skill', async () => {
  const how = { gates: ['rubric docs/review.md', 'skill skills/accept/SKILL.md'] };
  const before = { 'docs/review.md': 'a', 'docs/other.md': 'a', 'skills/accept/SKILL.md': 'a', 'skills/x.md': 'a' };
  const after = { 'docs/review.md': 'b', 'docs/other.md': 'b', 'skills/accept/SKILL.md': 'b', 'skills/x.md': 'b' };
  expect(await rules(before, { ...after, 'skills/accept/new.md': 'b' }, how)).toEqual([
    'protected docs/review.md',
    'protected skills/accept/SKILL.md',
    'protected skills/accept/new.md',
  ]);
});

describe('gate-file', () => {
  test('a file of the base that a gate names; not a new one, not a folder', async () => {
    const how = { gates: ['./check.sh --config=conf/lint.json src', 'cd web && node ./verify.mjs'] };
    const before = { 'check.sh': 'a', 'conf/lint.json': '{}', 'src/x.js': 'a', 'web/verify.mjs': 'a' };
    const after = { 'check.sh': 'b', 'conf/lint.json': '{ }', 'src/x.js': 'b', 'web/verify.mjs': 'b' };
    expect(await rules(before, after, how)).toEqual([
      'gate-file check.sh',
      'gate-file conf/lint.json',
      'gate-file web/verify.mjs',
    ]);
    expect(await rules({}, after, how)).toEqual([]);
    expect(await rules(before, after, { ...how, tests: ['check.sh', 'conf/**', 'web'] })).toEqual([]);
  });

  test('what a gate only looks at is the work, but for its configuration', async () => {
    const gates = [
      'grep -q done notes.md && ! test -f notes.md',
      'npx eslint --config lint.js --fix src/x.js',
      'diff want.txt <(./run)',
    ];
    const [a, b] = ['a\n', 'b\n'].map((text) => ({
      'notes.md': text,
      'lint.js': text,
      'src/x.js': text,
      'want.txt': text,
    }));
    expect(await rules(a ?? {}, b ?? {}, { gates })).toEqual(['gate-file lint.js', 'gate-file want.txt']);
  });

  test('a test file that a gate names may grow', async () => {
    const body = "test('a', () => {\n  assert(a);\n});\n";
    const grown = body + body.replace("'a'", "'b'");
    const how = { gates: ['node --test test/a.test.js'] };
    expect(await rules({ 'test/a.test.js': body }, { 'test/a.test.js': grown }, how)).toEqual([]);
    expect(await rules({ 'test/a.test.js': grown }, { 'test/a.test.js': body }, how)).toEqual([
      'shrink test/a.test.js',
    ]);
  });

  test('configuration of runners, when the base has it', async () => {
    const names = [
      'vitest.config.ts',
      'web/jest.config.js',
      '.mocharc.json',
      'pytest.ini',
      '.config/nextest.toml',
      '.nycrc',
    ];
    const [a, b] = ['a', 'b'].map((text) => Object.fromEntries(names.map((name) => [name, text])));
    expect(await rules(a ?? {}, b ?? {})).toEqual(names.map((name) => `gate-file ${name}`).sort());
    expect(await rules({}, b ?? {})).toEqual([]);
  });

  test('a first configuration of a runner that the gates already call', async () => {
    const base = { 'package.json': manifest({ test: 'vitest run' }) };
    const files = { ...base, 'vitest.config.ts': 'x', 'pytest.ini': 'x' };
    expect(await rules(base, files)).toEqual(['gate-file vitest.config.ts']);
    expect(await rules(base, files, { gates: ['npx jest'] })).toEqual([]);
    expect(await rules({}, files, { gates: ['npx vitest run', 'python -m pytest'] })).toEqual([
      'gate-file pytest.ini',
      'gate-file vitest.config.ts',
    ]);
    expect(await rules(base, files, { tests: ['vitest.config.ts'] })).toEqual([]);
    const parts = {
      'package.json': manifest({ test: 'vitest run' }, { jest: {} }),
      'pyproject.toml': '[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "-k x"\n',
    };
    const without = { ...base, 'pyproject.toml': '[project]\nname = "x"\n' };
    expect(await rules(without, parts)).toEqual([]);
    expect(await rules(without, parts, { gates: ['npx jest && pytest -q'] })).toEqual([
      'gate-file package.json',
      'gate-file pyproject.toml',
    ]);
  });

  test('what vite.config says to vitest, and nothing else of it', async () => {
    const config = (more: string): Files => ({
      'package.json': manifest({ test: 'vitest run' }),
      'vite.config.ts': `export default defineConfig({\n  plugins: [a()], // test: { no }\n${more}});\n`,
    });
    const some = config('  test: { include: ["test/**"], deps: { a: 1 } },\n');
    expect(await rules(some, config('  test: { include: ["test/a/**"], deps: { a: 1 } },\n'))).toEqual([
      'gate-file vite.config.ts',
    ]);
    expect(
      await rules(some, config('  build: {},\n  test: {\n    include: ["test/**"],\n    deps: { a: 1 } },\n')),
    ).toEqual([]);
    expect(await rules(config(''), some)).toEqual(['gate-file vite.config.ts']);
    expect(await rules({ 'package.json': manifest({ test: 'vitest run' }) }, some)).toEqual([
      'gate-file vite.config.ts',
    ]);
    expect(await rules(config(''), some, { gates: ['npx jest'] })).toEqual([]);
  });

  const manifest = (scripts: object, more: object = {}) => JSON.stringify({ name: 'x', scripts, ...more }, null, 2);

  test('scripts that gates call are compared by value', async () => {
    const scripts = { test: 'npm run unit && vitest run', unit: 'node scripts/unit.mjs', build: 'tsc' };
    const before = { 'package.json': manifest(scripts), 'scripts/unit.mjs': 'a' };
    const after = async (changed: object) =>
      (await guard(before, { ...before, 'package.json': manifest({ ...scripts, ...changed }) })).map(
        (one) => one.message,
      );
    expect(await after({ test: 'true' })).toEqual([
      expect.stringContaining(
        'the script "test" is "true" instead of "npm run unit && vitest run", though gates call it',
      ),
    ]);
    expect(await after({ unit: 'true' })).toHaveLength(1);
    expect(await after({ pretest: 'rm -r test' })).toHaveLength(1);
    expect(await after({ build: 'rollup', lint: 'eslint .' })).toEqual([]);
    expect(await rules(before, { ...before, 'package.json': manifest({ ...scripts, test: undefined }) })).toHaveLength(
      1,
    );
    expect(await rules(before, { ...before, 'package.json': manifest(scripts, { dependencies: { a: '1' } }) })).toEqual(
      [],
    );
    expect(await rules(before, { ...before, 'scripts/unit.mjs': 'b' })).toEqual(['gate-file scripts/unit.mjs']);
    const changed = { ...before, 'package.json': manifest({ ...scripts, test: 'true' }) };
    expect(await rules(before, changed, { gates: ['cargo test'] })).toEqual([]);
    expect(await rules(before, changed, { tests: ['package.json'] })).toEqual([]);
  });

  test.each(['npm t', 'pnpm run test', 'yarn test --ci', 'bun run test', 'CI=1 npm --silent test', 'npx run-s test'])(
    'knows %s as a call of the script',
    async (run) => {
      const [before, after] = ['vitest run', 'true'].map((script) => ({ 'package.json': manifest({ test: script }) }));
      expect(await rules(before ?? {}, after ?? {}, { gates: [run] })).toEqual(['gate-file package.json']);
    },
  );

  test('what package.json, pyproject.toml, setup.cfg and tox.ini say to runners', async () => {
    const toml = (options: string, version = '1') =>
      `[project]\nversion = "${version}"\n[tool.pytest.ini_options]\n# note\naddopts = "${options}"\n`;
    const before = {
      'package.json': manifest({}, { jest: { bail: true } }),
      'pyproject.toml': toml('-q'),
      'setup.cfg': '[tool:pytest]\ntestpaths = tests\n',
      'tox.ini': '[testenv]\ncommands = pytest\n',
    };
    const after = {
      'package.json': manifest({}, { jest: { testPathIgnorePatterns: ['.'] } }),
      'pyproject.toml': toml('-q --deselect tests'),
      'setup.cfg': '[tool:pytest]\ntestpaths = none\n',
      'tox.ini': '[testenv]\ncommands = true\n',
    };
    expect(await rules(before, after)).toEqual(Object.keys(before).map((name) => `gate-file ${name}`));
    expect(await rules(before, { ...before, 'pyproject.toml': toml('-q', '2').replace('note', 'words') })).toEqual([]);
  });

  test('recipes of make and just that gates call', async () => {
    const recipes = (check: string) => `all: build\n\nbuild:\n\tcc x.c\n\ntest: unit\n\t./run\n\nunit:\n\t${check}\n`;
    const makefile = (check: string) => ({ Makefile: recipes(check), justfile: recipes(check) });
    expect(await rules(makefile('go test'), makefile('true'), { gates: ['make -j2 test', 'just unit'] })).toEqual([
      'gate-file Makefile',
      'gate-file justfile',
    ]);
    expect(await rules(makefile('go test'), makefile('true'), { gates: ['make'] })).toEqual([]);
    const included = (check: string) => ({
      Makefile: 'include mk/a.mk ./mk/b.mk\nall: unit\n',
      'mk/b.mk': `unit:\n\t${check}\n`,
    });
    expect(await rules(included('go test'), included('true'), { gates: ['make'] })).toEqual(['gate-file mk/b.mk']);
    expect(await rules(included('go test'), included('true'), { gates: ['go test'] })).toEqual([]);
  });
});

test('a file that guards do not read is told, unless touches names it', async () => {
  const large = 'a'.repeat(9 * 1024 * 1024);
  const limits = { fileBytes: 100 * 1024 * 1024, lines: 1000, files: 10 };
  expect(await rules({}, { 'big.txt': large }, { limits })).toEqual(['size big.txt']);
  expect(await rules({ 'big.txt': `${large}b` }, { 'big.txt': large }, { limits })).toEqual(['size big.txt']);
  expect(await rules({ 'big.txt': large }, { 'moved.txt': large }, { limits })).toEqual([]);
  expect(await rules({}, { 'big.txt': large }, { limits, touches: ['big.txt'] })).toEqual([]);
  // Told once.
  expect(await rules({}, { 'big.txt': large })).toEqual(['size big.txt']);
});

describe('limits, size and scope', () => {
  test('too many files and lines; moves and lock files do not count as such', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 4 }, (_, at) => [`src/${String(at)}.js`, `${String(at)}\n${source}`]),
    );
    expect(await rules({}, files, { limits: { files: 3, lines: 10 } })).toEqual(['limits', 'limits']);
    expect(await rules({}, files, { limits: { files: 4, lines: 20 } })).toEqual([]);
    const moved = Object.fromEntries(Object.entries(files).map(([path, text]) => [path.replace('src', 'lib'), text]));
    expect(await rules(files, moved, { limits: { files: 4, lines: 1 } })).toEqual([]);
    expect(await rules({}, { 'package-lock.json': 'x\n'.repeat(30) }, { limits: { lines: 20 } })).toEqual([]);
  });

  test('a file that is too large, new or grown, and it is not read when it is huge', async () => {
    const how = { limits: { fileBytes: 100 } };
    const [small, large] = ['x'.repeat(100), 'x'.repeat(101)];
    expect(await rules({ b: small, c: `${large}y` }, { a: large, b: large, c: large, d: small }, how)).toEqual([
      'size a',
      'size b',
    ]);
    const reads: Oid[] = [];
    await guard({}, { a: 'x'.repeat(9 * 1024 * 1024) }, { reads });
    expect(reads).toEqual([]);
  });

  test('files outside touches, when the scope is strict and the Issue has some', async () => {
    const after = { 'src/a.js': 'a', 'lib/b.js': 'b', 'test/a.js': 'c' };
    const protect = { scope: 'strict' } as const;
    expect(await rules({}, after, { protect, touches: ['src/**'], tests: ['test/**'] })).toEqual(['scope lib/b.js']);
    expect(await rules({}, after, { protect })).toEqual([]);
    expect(await rules({}, after, { touches: ['src/**'] })).toEqual([]);
  });
});

test('conflict marks that the base did not have', async () => {
  const marked = 'a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n';
  expect(await rules({ old: marked }, { old: `${marked}more\n`, new: marked, half: 'a\n<<<<<<< ours\n' })).toEqual([
    'conflict new:2',
  ]);
});

describe('threshold', () => {
  test.each([
    ['vite.config.ts', 'thresholds: { lines: 80, branches: 70 }', 'thresholds: { lines: 80, branches: 60 }'],
    ['package.json', '{"nyc2": {"check-coverage": 90}}', '{"nyc2": {}}'],
    ['pyproject.toml', '[x]\nfail_under = 85', '[x]\nfail_under = 80'],
    ['Makefile', 'test:\n\tpytest --cov-fail-under=80', 'test:\n\tpytest --cov-fail-under=8'],
    [
      'package.json',
      '{"scripts": {"x": "eslint . --max-warnings 0"}}',
      '{"scripts": {"x": "eslint . --max-warnings 10"}}',
    ],
    ['eslint.config.js', "rules: { 'no-console': 'error' }", "rules: { 'no-console': 'off' }"],
    ['eslint.config.js', "rules: { 'no-console': 'error' }", 'rules: { }'],
    ['eslint.config.js', "rules: { 'no-console': 2 }", "rules: { 'no-console': 0 }"],
    ['.eslintrc.json', '"rules": { "no-console": [2, {"a": 1}] }', '"rules": { "no-console": "warn" }'],
    ['.eslintrc.json', '{ "rules": {} }', '{ "rules": { "@typescript-eslint/no-explicit-any": "off" } }'],
    ['eslint.config.js', "complexity: ['error', 10]", "complexity: ['error', 40]"],
    ['tsconfig.json', '{ "strict": true }', '{ "strict": false }'],
    ['tsconfig.json', '{ "strict": true }', '{ }'],
    ['tsconfig.json', '{ "strict": true }', '{ "strict": true, "noImplicitAny": false }'],
    ['mypy.ini', '[mypy]\ndisallow_untyped_defs = True', '[mypy]\ndisallow_untyped_defs = False'],
    ['.rubocop.yml', 'Max: 1\nmax_complexity: 5', 'Max: 1\nmax_complexity: 9'],
    ['pom.xml', '<minimum>0.80</minimum>', '<minimum>0.10</minimum>'],
    ['pom.xml', '<a/>', '<skipTests>true</skipTests>'],
    ['spec_helper.rb', 'minimum_coverage 90', 'minimum_coverage 10'],
  ])('%s: from %s to %s asks for less', async (name, before, after) => {
    expect((await rules({ [name]: before }, { [name]: after })).map((found) => found.split(':')[0])).toEqual([
      `threshold ${name}`,
    ]);
    expect(await rules({ [name]: before }, { [name]: after }, { tests: [name] })).toEqual([]);
  });

  test('the other way round is fine, and so are comments and other numbers', async () => {
    const names = ['vite.config.ts', 'eslint.config.js', 'tsconfig.json'];
    const before = ['lines: 80, // branches: 90\n', "'no-console': 'warn'", '{ "noEmit": true, "target": "ES2022" }'];
    const after = [
      'lines: 90, port: 80\n',
      "'no-console': 'error', 'eqeqeq': 'error'",
      '{ "noEmit": false, "target": "ES2020", "strict": true }',
    ];
    for (const [at, name] of names.entries()) {
      expect(await rules({ [name]: before[at] ?? '' }, { [name]: after[at] ?? '' })).toEqual([]);
    }
    const eslint = (rule: string) => ({ 'eslint.config.js': `rules: { 'no-eval': ${rule}, indent: ['error', 4] }` });
    expect(await rules(eslint('2'), { ...eslint("'error'"), 'package.json': '{ "a-b": 2 }' })).toEqual([]);
  });
});
