/** Tests that shrink, in every language that guards read, and what people do to tests that is not shrinking. */
import { describe, expect, test } from 'vitest';
import { guard, rules } from './guarded.js';

/** A file of a language with two tests of two assertions each, and how one is taken away. */
const languages = {
  javascript: {
    path: 'src/login.test.ts',
    tests: [
      "it('logs in', async () => {\n  expect(await login()).toBe(1);\n  expect(user.name).toEqual('a');\n});\n",
      "test.each([\n  [1, 2],\n  [3, 4],\n])('adds %i', (a, b) => {\n  assert.equal(a, b);\n  t.is(a, b);\n});\n",
    ],
    skipped:
      "it.skip('logs in', async () => {\n  expect(await login()).toBe(1);\n  expect(user.name).toEqual('a');\n});\n",
    emptied: "it('logs in', async () => {\n  expect(true).toBe(true);\n});\n",
    comment: (text: string) => `/*\n${text}*/\n`,
  },
  python: {
    path: 'tests/test_login.py',
    tests: [
      'def test_login(user):\n    assert login(user)\n    assert user.name == "a"\n\n\n',
      '@pytest.mark.parametrize("a, b", [(1, 2), (3, 4)])\nasync def test_adds(a, b):\n    with pytest.raises(ValueError):\n        add(a, b)\n    self.assertEqual(a, b)\n',
    ],
    skipped:
      '@pytest.mark.skip(reason="slow")\ndef test_login(user):\n    assert login(user)\n    assert user.name == "a"\n\n\n',
    emptied: 'def test_login(user):\n    assert True\n\n\n',
    comment: (text: string) => text.replace(/^/gm, '# '),
  },
  go: {
    path: 'auth/login_test.go',
    tests: [
      'func TestLogin(t *testing.T) {\n\tif !Login() {\n\t\tt.Errorf("no")\n\t}\n\trequire.NoError(t, err)\n}\n',
      'func TestAdd(t *testing.T) {\n\tassert.Equal(t, 1, add())\n\tt.Fatal("x")\n}\n',
    ],
    skipped:
      'func TestLogin(t *testing.T) {\n\tt.Skip("slow")\n\tif !Login() {\n\t\tt.Errorf("no")\n\t}\n\trequire.NoError(t, err)\n}\n',
    emptied: 'func TestLogin(t *testing.T) {\n}\n',
    comment: (text: string) => `/*\n${text}*/\n`,
  },
  rust: {
    path: 'src/login.rs',
    tests: [
      '#[cfg(test)]\nmod tests {\n    #[test]\n    fn logs_in() {\n        assert!(login());\n        assert_eq!(name(), "a");\n    }\n',
      '    #[tokio::test]\n    async fn adds() {\n        assert_ne!(1, add());\n        assert!(matches!(x, Some(_)));\n    }\n}\n',
    ],
    skipped:
      '#[cfg(test)]\nmod tests {\n    #[test]\n    #[ignore]\n    fn logs_in() {\n        assert!(login());\n        assert_eq!(name(), "a");\n    }\n',
    emptied: null,
    comment: (text: string) => `/*\n${text}*/\n#[cfg(test)]\nmod tests {\n`,
  },
  java: {
    path: 'src/test/java/a/LoginTest.java',
    tests: [
      '@Test\nvoid logsIn() {\n  assertEquals("a", user.name());\n  assertThat(login()).isTrue();\n}\n',
      '@ParameterizedTest\n@ValueSource(ints = {1, 2})\nvoid adds(int a) {\n  assertTrue(a > 0);\n  verify(mock).call();\n}\n',
    ],
    skipped:
      '@Disabled("slow")\n@Test\nvoid logsIn() {\n  assertEquals("a", user.name());\n  assertThat(login()).isTrue();\n}\n',
    emptied: null,
    comment: (text: string) => `/*\n${text}*/\n`,
  },
  ruby: {
    path: 'spec/login_spec.rb',
    tests: [
      "  it 'logs in' do\n    expect(login).to be true\n    expect(user.name).to eq('a')\n  end\n",
      '  def test_adds\n    assert_equal 1, add\n    refute_nil add\n  end\n',
    ],
    skipped: "  xit 'logs in' do\n    expect(login).to be true\n    expect(user.name).to eq('a')\n  end\n",
    emptied: "  it 'logs in' do\n    # later\n  end\n",
    comment: (text: string) => `=begin\n${text}=end\n`,
  },
};

describe.each(Object.entries(languages))('%s', (_, { path, tests, skipped, emptied, comment }) => {
  const [one = '', two = ''] = tests;
  const whole = { [path]: one + two };

  test('a test that is removed, or put into a comment', async () => {
    expect(await rules(whole, { [path]: one })).toEqual([`shrink ${path}`]);
    expect(await rules(whole, { [path]: comment(one) + two })).toEqual([`shrink ${path}`]);
    expect(await rules(whole, {}, { touches: [path] })).toEqual([`shrink ${path}`]);
  });

  test('an assertion that is removed', async () => {
    const lines = one.split('\n').filter((line) => !/name|NoError/.test(line) || /void|fn|user\)?:/.test(line));
    const findings = await guard(whole, { [path]: lines.join('\n') + two });
    expect(findings.map(({ message }) => message)).toEqual([expect.stringContaining('1 assertion fewer')]);
  });

  test('a new skip, with its line', async () => {
    const findings = await guard(whole, { [path]: skipped + two });
    expect(findings).toEqual([
      expect.objectContaining({ rule: 'shrink', file: path, line: expect.any(Number) as number }),
    ]);
    expect(findings[0]?.message).toContain('which keeps tests from running');
  });

  test('a test that is emptied while others grow', async () => {
    if (emptied === null) return;
    const others = {
      'more.test.js': "it('more', () => {\n  expect(a).toBe(1);\n  expect(b).toBe(1);\n  expect(c).toBe(1);\n});\n",
    };
    const findings = await guard(whole, { [path]: emptied + two, ...others });
    expect(findings.map(({ message }) => message)).toEqual([expect.stringContaining('was emptied')]);
  });

  test('what is renamed, moved, split, joined or grows is not shrinking, and the Issue can allow the rest', async () => {
    const renamed = (text: string): string =>
      text.replace(/log(?:s_| )?in\b|logs in|logsIn|TestLogin|test_login/i, (name) => `${name}_x`);
    expect(await rules(whole, { [path]: renamed(one) + two })).toEqual([]);
    const elsewhere = path.replace(/login/i, (name) => (name === 'login' ? 'other' : 'Other'));
    expect(await rules(whole, { [elsewhere]: one + two })).toEqual([]);
    expect(await rules({ [path]: one, [elsewhere]: two }, { [path]: one + two })).toEqual([]);
    expect(await rules(whole, { [path]: one + two + two })).toEqual([]);
    expect(await rules(whole, { [path]: one }, { tests: [path] })).toEqual([]);
    expect(await rules(whole, {}, { tests: [path] })).toEqual([]);
  });
});

describe('JavaScript and TypeScript', () => {
  const path = 'test/a.test.ts';
  const one = "it('a', () => {\n  expect(a).toBe(1);\n});\n";

  test.each([
    ["it.only('a', f);", 'it.only'],
    ["describe.skip('a', f);", 'describe.skip'],
    ["fit('a', f);", 'fit'],
    ["test.skipIf(ci)('a', f);", 'test.skipIf'],
    ["test('a', { skip: true }, f);", 'skip'],
    ["test('a', (t) => { t.skip(); });", 't.skip'],
    ["test.fixme('a', f);", 'test.fixme'],
  ])('%s is a mark', async (text, mark) => {
    const findings = await guard({ [path]: one }, { [path]: `${one}${text}\n` });
    expect(findings).toEqual([expect.objectContaining({ rule: 'shrink', line: 4 })]);
    expect(findings[0]?.message).toContain(`a new "${mark}`);
  });

  test('a mark that was there may move and be written in another way', async () => {
    const skipped = "it.skip('b', f);\n";
    expect(await rules({ [path]: one + skipped }, { [path]: one, 'test/b.test.ts': skipped })).toEqual([]);
    expect(await rules({ [path]: one + skipped }, { [path]: `${one}xit('b', f);\n` })).toEqual([]);
  });

  test('what stands in strings, comments, templates and regular expressions is not counted', async () => {
    const text =
      "// it.only('x')\nconst a = `it.skip('y', () => { expect(1) })`;\nconst b = /[`'\"]/;\nconst c = \"it('z')\";\n";
    expect(await rules({ [path]: one }, { [path]: text + one })).toEqual([]);
    expect(await rules({ [path]: text + one }, { [path]: one })).toEqual([]);
    expect(await rules({ [path]: one + one }, { [path]: `${one}${text}// ${one.replaceAll('\n', ' ')}\n` })).toEqual([
      `shrink ${path}`,
    ]);
  });

  test('tests that become rows of a table are still there, and rows that go are not', async () => {
    const alone = [1, 2, 3].map(
      (n) => `it('adds ${String(n)}', () => {\n  expect(f(${String(n)})).toBe(1);\n  expect(g).toBe(1);\n});\n`,
    );
    const table = (rows: string) =>
      `it.each([${rows}])('adds %i', (n) => {\n  expect(f(n)).toBe(1);\n  expect(g).toBe(1);\n});\n`;
    expect(await rules({ [path]: alone.join('') }, { [path]: table('1, 2, 3,') })).toEqual([]);
    expect(await rules({ [path]: alone.join('') }, { [path]: table('[1, [2]], { a: 1 }') })).toEqual([
      `shrink ${path}`,
    ]);
    const lines = (rows: string) => `it.each\`\na | b\n${rows}\`('x', ({ a }) => {\n  expect(a).toBe(1);\n});\n`;
    expect(await rules({ [path]: lines('1 | 2\n3 | 4\n') }, { [path]: lines('1 | 2\n') })).toEqual([`shrink ${path}`]);
  });

  test('an assertion that always holds is none', async () => {
    expect(
      await rules({ [path]: one }, { [path]: one.replace('expect(a).toBe(1)', 'expect(true).toBe(true); f(a)') }),
    ).toEqual([`shrink ${path}`]);
  });

  test('helpers of tests and files that only look like tests', async () => {
    const helpers = { 'src/expectations.ts': 'export const it = 1;\nexpect(1);\n', 'src/contest.ts': "it('x', f);\n" };
    expect(await rules(helpers, { 'src/expectations.ts': '', 'src/contest.ts': '' })).toEqual([]);
    expect(await rules({ [path]: one }, { 'test/a.disabled': one })).toEqual([`shrink ${path}`]);
  });
});

test('a test file that was made too large to be counted has lost its tests', async () => {
  const body = "it('a', () => {\n  expect(f()).toBe(1);\n});\n";
  const padded = `${' '.repeat(3 * 1024 * 1024)}\n`;
  expect(await rules({ 'a.test.js': body }, { 'a.test.js': padded })).toEqual(['shrink a.test.js']);
  expect(await rules({ 'a.test.js': padded }, { 'a.test.js': body })).toEqual([]);
  const config = { 'tsconfig.json': '{"compilerOptions":{"strict":true}}' };
  expect(await rules(config, { 'tsconfig.json': `{"compilerOptions":{}}${padded}` })).toEqual([
    'threshold tsconfig.json',
  ]);
});

describe('tests that become rows are still there', () => {
  const each = (head: string, rows: string): string =>
    `${rows}it.each${head}('%d', (a, b) => {\n  expect(f(a)).toBe(b);\n});\n`;
  const python = (rows: string, name: string): string =>
    `${rows}@pytest.mark.parametrize("a,b", ${name})\ndef test_f(a, b):\n    assert f(a) == b\n`;
  const rust = (tests: string): string => `#[cfg(test)]\nmod tests {\n${tests}}\n`;
  const java = (tests: string): string => `class FTest {\n${tests}}\n`;
  const javaTable =
    '@ParameterizedTest(name = "x")\n@CsvSource({"1,1", "2,2"})\nvoid f(int a, int b) { assertEquals(b, f(a)); }\n';
  const javaMethod =
    'static Stream<Arguments> rows() { return Stream.of(arguments(1, 1), arguments(2, 2)); }\n@ParameterizedTest\n@MethodSource("rows")\nvoid f(int a, int b) { assertEquals(b, f(a)); }\n';
  const cases =
    '#[rstest]\n#[case(1, 1)]\n#[case::two(2, 2)]\nfn f(#[case] a: i32, #[case] b: i32) {\n    assert_eq!(f(a), b);\n}\n';

  test.each([
    [
      'JavaScript, under a name',
      'a.test.ts',
      [1, 2].map((n) => `it('${String(n)}', () => {\n  expect(f(${String(n)})).toBe(1);\n});\n`).join(''),
      each('(rows)', 'const rows: Row[] = [[1, 1], [2, 2]];\n'),
    ],
    [
      'Python, under a name',
      'test_a.py',
      [1, 2].map((n) => `def test_${String(n)}():\n    assert f(1) == 1\n`).join(''),
      python('ROWS = [(1, 1), (2, 2)]\n', 'ROWS'),
    ],
    [
      'Rust',
      'src/a.rs',
      rust([1, 2].map((n) => `#[test]\nfn f${String(n)}() {\n    assert_eq!(f(1), 1);\n}\n`).join('')),
      rust(cases),
    ],
    [
      'Java',
      'src/test/java/FTest.java',
      java('@Test\nvoid a() { assertEquals(1, f(1)); }\n@Test\nvoid b() { assertEquals(2, f(2)); }\n'),
      java(javaTable),
    ],
    [
      'Java, from a method',
      'src/test/java/FTest.java',
      java('@Test\nvoid a() { assertEquals(1, f(1)); }\n@Test\nvoid b() { assertEquals(2, f(2)); }\n'),
      java(javaMethod),
    ],
  ])('%s', async (_language, path, tests, table) => {
    expect(await rules({ [path]: tests }, { [path]: table })).toEqual([]);
    // A row that goes is missed, where it can be counted.
    expect(
      await rules(
        { [path]: table },
        { [path]: table.replace(/, \[2, 2\]|, \(2, 2\)|#\[case::two\(2, 2\)\]\n|, "2,2"/, '') },
      ),
    ).toEqual(path === 'src/test/java/FTest.java' && table.includes('MethodSource') ? [] : [`shrink ${path}`]);
  });
});

test('rows of a table in Go take the place of tests', async () => {
  const path = 'a_test.go';
  const alone = ['One', 'Two'].map((name) => `func Test${name}(t *testing.T) {\n\tassert.Equal(t, 1, f())\n}\n`);
  const table =
    'func TestAll(t *testing.T) {\n\tfor _, c := range []x{\n\t\t{"one", 1},\n\t\t{"two", 2},\n\t} {\n\t\tassert.Equal(t, 1, f(c))\n\t}\n}\n';
  expect(await rules({ [path]: alone.join('') }, { [path]: table })).toEqual([]);
});

test('code of Rust asserts too, and may stop', async () => {
  const code = (check: string) =>
    `fn f() {\n    ${check}\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { assert!(f()); }\n}\n`;
  expect(await rules({ 'src/a.rs': code('assert!(x > 1);') }, { 'src/a.rs': code('') })).toEqual([]);
});

test('[protect] tests names further files, and assertions what is counted in them', async () => {
  const protect = { tests: ['checks/**'], assertions: ['^ensure\\s'] };
  const before = {
    'checks/a.lua': 'ensure a\nensure b\nprint(1)\n',
    'checks/b.js': "it('b', () => {\n  expect(1).toBe(a);\n});\n",
  };
  const fewer = { ...before, 'checks/a.lua': 'ensure a\nprint(1)\n' };
  expect(await rules(before, fewer, { protect })).toEqual(['shrink checks/a.lua']);
  expect(await rules(before, fewer)).toEqual([]);
  expect(await rules(before, { ...before, 'checks/b.js': '' }, { protect })).toEqual(['shrink checks/b.js']);
});
