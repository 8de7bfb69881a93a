import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { renderDiagnostics } from '../../src/config/diagnostic.js';
import { checkGates, checkSpecSlug, parseIssueFile, parseSpecFolder } from '../../src/config/issue-file.js';
import { dependencies, files, issueText, mistakes, parse, slug, underlined } from './folder.js';

describe('C001 a parsed result belongs to its caller', () => {
  test('changing one result does not change the next parse of the same bytes', () => {
    const contents = { '01-a.md': issueText(), '02-b.md': issueText('depends-on: [01]\ngates: [review]\n') };
    const first = parse(contents);
    for (const issue of first.spec.issues) {
      const dependsOn: unknown = issue.dependsOn;
      const gates: unknown = issue.gates;
      if (Array.isArray(dependsOn) && Array.isArray(gates)) {
        dependsOn.push('99-planted');
        gates.push('planted');
      }
    }
    const second = parse(contents);
    expect(dependencies(second, '02-b')).toEqual(['01-a']);
    expect(second.spec.issues[1]?.gates).toEqual(['review']);
  });

  test('a file that could not be read is refused again the second time', () => {
    const contents = { '01-a.md': issueText('depends-on: [\n') };
    const [first, second] = [mistakes(contents), mistakes(contents)];
    expect(first).toHaveLength(1);
    expect(second).toEqual(first);
  });
});

describe('C002 frontmatter that runs code', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'giro-marker-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  const fences = [
    '---js',
    '---javascript',
    '--- js',
    '---JS',
    '---Javascript',
    '---\tjs',
    '---coffee',
    '---json',
    '---yaml',
  ];
  test.each(fences.flatMap((fence) => [fence, `\uFEFF${fence}`]))('%j is refused and nothing runs', (fence) => {
    const marker = join(folder, 'marker');
    const code = `(() => { process.getBuiltinModule('node:fs').writeFileSync(${JSON.stringify(marker)}, ''); return {}; })()`;
    for (const end of ['\n', '\r\n']) {
      const text = [fence, code, '---', '# Login', '', 'text', ''].join(end);
      const [found, ...others] = mistakes({ '01-a.md': text, 'SPEC.md': text }).filter((d) =>
        d.file.endsWith('01-a.md'),
      );
      expect(others).toEqual([]);
      expect(found).toMatchObject({ line: 1, column: 1, message: 'only YAML frontmatter is supported' });
    }
    expect(existsSync(marker)).toBe(false);
  });

  test('a code tag in the YAML is refused', () => {
    const [found] = mistakes({ '01-a.md': issueText('touches: !!js/function "function () {}"\n') });
    expect(found?.message).toBe('anchors, aliases and tags are not supported');
  });
});

describe('C003 ids mean what was typed', () => {
  const numbers = ['01', '02', '03', '04', '05', '06', '07', '08', '09', '10'];
  const ten = Object.fromEntries(numbers.map((number) => [`${number}-i${number}.md`, issueText()]));

  test('01, 08 and 010 are Issues 1, 8 and 10; a bare 07 is Issue 7', () => {
    const spec = parse({
      ...ten,
      '09-i09.md': issueText('depends-on: [01, 08, 010]\n'),
      '10-i10.md': issueText('depends-on: 07\n'),
    });
    expect(dependencies(spec, '09-i09')).toEqual(['01-i01', '08-i08', '10-i10']);
    expect(dependencies(spec, '10-i10')).toEqual(['07-i07']);
  });

  test.each(['1', '01', '0001', '"01"', "'1'", '01-i01', '1-i01', '001-i01'])('%s is Issue 01-i01', (typed) => {
    expect(dependencies(parse({ ...ten, '02-i02.md': issueText(`depends-on: [${typed}]\n`) }), '02-i02')).toEqual([
      '01-i01',
    ]);
    expect(dependencies(parse({ ...ten, '02-i02.md': issueText(`depends-on: ${typed}\n`) }), '02-i02')).toEqual([
      '01-i01',
    ]);
    expect(
      dependencies(parse({ ...ten, '02-i02.md': issueText(`depends-on:\n  - ${typed} # why\n`) }), '02-i02'),
    ).toEqual(['01-i01']);
  });

  test.each(['0x1', '1.0', '+1', '-1', '1e0', '1_0', '01-', 'i01', '99999999999999999999', 'true'])(
    '%s is refused',
    (typed) => {
      const [found, ...others] = mistakes({ ...ten, '02-i02.md': issueText(`depends-on: [${typed}]\n`) });
      expect(others).toEqual([]);
      expect(found?.message).toBe(`\`depends-on\` names an unknown Issue: \`${typed}\``);
      expect(underlined(found)).toBe(typed);
    },
  );

  test('a repeated id counts once', () => {
    const { places } = parse({ '01-a.md': issueText(), '02-b.md': issueText('depends-on: [1, 01]\n') });
    expect(
      [...places.values()].flatMap(({ dependsOn }) => [...dependsOn.values()].map(({ column }) => column)),
    ).toEqual([14]);
    expect(
      dependencies(parse({ ...ten, '02-i02.md': issueText('depends-on: [1, 01, 01-i01, 3]\n') }), '02-i02'),
    ).toEqual(['01-i01', '03-i03']);
  });
});

describe('C004 nothing before the first fence makes the header vanish', () => {
  const text = '---\nstate: ready\ndepends-on: [01]\n---\n# B\n\ntext\n';
  const withB = (b: string) => ({ '01-a.md': issueText(), '02-b.md': b });

  test.each([
    ['a byte-order mark', `\uFEFF${text}`],
    ['CRLF', text.replaceAll('\n', '\r\n')],
    ['both', `\uFEFF${text.replaceAll('\n', '\r\n')}`],
  ])('%s parses', (_, b) => {
    expect(dependencies(parse(withB(b)), '02-b')).toEqual(['01-a']);
  });

  test('a closing fence at the very end parses', () => {
    const result = parseIssueFile({
      path: 'docs/specs/auth/issues/02-b.md',
      bytes: Buffer.from('---\nstate: ready\n---'),
    });
    expect(result.ok ? [] : result.failure.map(({ message }) => message)).toEqual(['the Issue has no text']);
    expect(parse({ 'SPEC.md': '---\nstate: active\n---' }).spec).toMatchObject({
      state: 'active',
      body: '',
      title: 'auth',
    });
  });

  test.each([
    ['a blank first line', `\n${text}`, 'a blank line stands before the frontmatter'],
    ['a blank first line with CRLF', `\r\n${text}`, 'a blank line stands before the frontmatter'],
    ['blanks on the first line', ` ${text}`, 'something invisible stands before the frontmatter'],
    ['a zero-width space', `\u200B${text}`, 'something invisible stands before the frontmatter'],
    ['two byte-order marks', `\uFEFF\uFEFF${text}`, 'something invisible stands before the frontmatter'],
    ['four dashes', `-${text}`, 'the first line has 4 dashes instead of three'],
    ['blanks behind the fence', text.replace('---\n', '---  \n'), 'blanks follow the --- that opens the frontmatter'],
    ['TOML fences', text.replaceAll('---', '+++'), 'only YAML frontmatter is supported'],
    ['no closing fence', text.replace('\n---\n', '\n'), 'the frontmatter is never closed'],
    ['only a fence', '---', 'the frontmatter is never closed'],
    ['a longer closing fence', text.replace('\n---\n', '\n---foo\n'), '`---foo` does not close the frontmatter'],
    ['a closing fence of four', text.replace('\n---\n', '\n----\n'), '`----` does not close the frontmatter'],
    ['a lone carriage return', text.replace('\n---\n', '\n---\r'), '`---\\u{d}# B` does not close the frontmatter'],
    ['no frontmatter', '# B\n\ntext\n', 'an Issue needs frontmatter with a state'],
    ['an empty file', '', 'an Issue needs frontmatter with a state'],
  ])('%s is refused with the reason', (_, b, message) => {
    const found = mistakes(withB(b));
    expect(found.map((d) => d.message)).toEqual([message]);
    expect(found[0]).toMatchObject({ file: 'docs/specs/auth/issues/02-b.md', line: expect.any(Number) as number });
    expect(mistakes({ 'SPEC.md': b }).length).toBe(['no frontmatter', 'an empty file'].includes(_) ? 0 : 1);
  });
});

describe('C005 depends-on in an unexpected shape', () => {
  test.each(['depends-on:\n', 'depends-on: ~\n', 'depends-on: null\n', 'depends-on: []\n', 'depends-on: # none\n'])(
    '%j is none',
    (line) => {
      expect(dependencies(parse({ '01-a.md': issueText(), '02-b.md': issueText(line) }), '02-b')).toEqual([]);
    },
  );

  test.each([
    ['"01, 02"', '`depends-on` holds several ids in one text: `01, 02`', '"01, 02"'],
    ['01, 02', '`depends-on` holds several ids in one text: `01, 02`', '01, 02'],
    ['01 02', '`depends-on` holds several ids in one text: `01 02`', '01 02'],
    ['[{id: 01}]', '`depends-on` holds a mapping, not an id: `{id: 01}`', '{id: 01}'],
    ['{id: 01}', '`depends-on` holds a mapping, not an id: `{id: 01}`', '{id: 01}'],
    ['[[01]]', '`depends-on` holds a list inside the list, not an id: `[01]`', '[01]'],
    ['[~]', '`depends-on` holds an empty entry, not an id: `~`', '~'],
    ['[""]', '`depends-on` holds an empty text, not an id', '""'],
    ['3', '`depends-on` names an unknown Issue: `3`', '3'],
    ['2026-11-30', '`depends-on` names an unknown Issue: `2026-11-30`, which looks like a date', '2026-11-30'],
  ])('%s is refused, naming file, field and entry', (typed, message, mark) => {
    const [found, ...others] = mistakes({ '01-a.md': issueText(), '02-b.md': issueText(`depends-on: ${typed}\n`) });
    expect(others).toEqual([]);
    expect(found).toMatchObject({ file: 'docs/specs/auth/issues/02-b.md', line: 3, message });
    expect(found?.hint).toBeTruthy();
    expect(underlined(found)).toBe(mark);
    expect(renderDiagnostics(found === undefined ? [] : [found])).not.toContain('[object');
  });

  test('every wrong entry of every file is reported at once, beside other mistakes', () => {
    const found = mistakes({
      '01-a.md': '---\nstate: redy\ndepends-on: [07, {a: 1}]\n---\n# A\n\ntext\n',
      '02-b.md': issueText('dependson: 01\n'),
      '03-c d.md': issueText(),
    });
    expect(found.map((d) => [d.file.slice(-9), d.line, underlined(d), d.message])).toEqual([
      [
        '03-c d.md',
        undefined,
        undefined,
        'this cannot be an Issue: its name may hold only a-z, 0-9 and dashes between them',
      ],
      ['s/01-a.md', 2, 'redy', '`state` is `redy`'],
      ['s/01-a.md', 3, '07', '`depends-on` names an unknown Issue: `07`'],
      ['s/01-a.md', 3, '{a: 1}', '`depends-on` holds a mapping, not an id: `{a: 1}`'],
      ['s/02-b.md', 3, 'dependson', 'unknown key `dependson`'],
    ]);
    expect(found[4]?.hint).toMatch(/^did you mean `depends-on`\? allowed keys: state, depends-on, /);
  });
});

describe('C006 rules and samples inside the body', () => {
  const body =
    '\n# Docs\n\nprose\n\n---\n\nmore\n\n```md\n---\nstate: done\ndepends-on: [zzz]\n---\n# Sample\n## History\n### Attempt 1\n```\n\nend  \n\n';

  test('the body is kept byte for byte and the sample is no header', () => {
    const { spec } = parse({ '01-a.md': `---\nstate: ready\n---\n${body}` });
    expect(spec.issues[0]).toMatchObject({ body, dependsOn: [], title: 'Docs', state: 'ready', history: '' });
  });

  test('a body with CRLF keeps it', () => {
    const crlf = body.replaceAll('\n', '\r\n');
    expect(parse({ '01-a.md': `---\r\nstate: ready\r\n---\r\n${crlf}` }).spec.issues[0]?.body).toBe(crlf);
  });

  test('prose with two rules and no header is refused', () => {
    const found = mistakes({ '01-a.md': 'prose\n\n---\nstate: ready\n---\nmore\n' });
    expect(found.map((d) => d.message)).toEqual(['an Issue needs frontmatter with a state']);
  });

  test('history is the part below the last ## History outside code', () => {
    const text = issueText('', '# A\n\ntext\n\n## History of it\n\nmine\n\n## History\n\n### Attempt 1\nbase\n');
    expect(parse({ '01-a.md': text }).spec.issues[0]).toMatchObject({
      body: '# A\n\ntext\n\n## History of it\n\nmine\n\n',
      history: '## History\n\n### Attempt 1\nbase\n',
    });
  });

  test('of two such headings the last begins the History', () => {
    const text = issueText('', '# A\n\ntext\n\n## History\n\nmine\n\n## History\n\n### Attempt 1\n');
    expect(parse({ '01-a.md': text }).spec.issues[0]?.history).toBe('## History\n\n### Attempt 1\n');
  });

  test('a forgotten fence in the body does not hide the History', () => {
    const text = issueText('', '# A\n\n```\ntext\n\n## History\n\n### Attempt 1\n');
    expect(parse({ '01-a.md': text }).spec.issues[0]?.history).toBe('## History\n\n### Attempt 1\n');
  });
});

describe('C007 other files in the folder', () => {
  test('only NN-slug.md in issues/ is an Issue; the rest is ignored with a reason', () => {
    const { spec } = parse({
      '01-a.md': issueText(),
      'issues/README.md': '# Read me\n',
      'issues/_template.md': issueText(),
      'issues/01-a.md~': issueText(),
      'issues/.#01-a.md': 'somebody@host.123',
      'issues/notes/02-draft.md': issueText(),
      'issues/plan.txt': 'x',
      'README.md': '# Read me\n',
      'notes/draft.md': 'x',
      'spec.md': 'x',
      '03-c.md.bak': 'x',
      'issues/binary': Uint8Array.of(0xff, 0x00),
    });
    expect(spec.issues.map((issue) => issue.id)).toEqual(['01-a']);
    expect(spec.ignored.map(({ path, reason }) => `${path.slice('docs/specs/auth/'.length)}: ${reason}`)).toEqual([
      'README.md: not in issues/',
      'issues/.#01-a.md: not named NN-slug.md',
      'issues/01-a.md~: not named NN-slug.md',
      'issues/03-c.md.bak: not named NN-slug.md',
      'issues/README.md: not named NN-slug.md',
      'issues/_template.md: not named NN-slug.md',
      'issues/binary: not named NN-slug.md',
      'issues/notes/02-draft.md: in a sub folder of issues/',
      'issues/plan.txt: not named NN-slug.md',
      'notes/draft.md: not in issues/',
      'spec.md: not in issues/',
    ]);
  });

  test('an Issue that lies beside SPEC.md is ignored with the way to make it one', () => {
    const result = parseSpecFolder({
      slug: slug('auth'),
      files: [...files({}), { path: 'docs/specs/auth/01-a.md', bytes: Buffer.from(issueText()) }],
    });
    expect(result.ok ? result.value.spec.ignored : []).toEqual([
      { path: 'docs/specs/auth/01-a.md', reason: 'not in issues/: move it to issues/01-a.md to make it an Issue' },
    ]);
  });
});

describe('C011 an Issue that depends on itself under another spelling', () => {
  test.each(['01-a', '1-a', '1', '01', '"001"'])('%s is a self-dependency', (typed) => {
    const [found, ...others] = mistakes({ '01-a.md': issueText(`depends-on: ${typed}\n`) });
    expect(others).toEqual([]);
    expect(found?.message).toBe(`the Issue depends on itself: \`${typed.replaceAll('"', '')}\``);
    expect(underlined(found)).toBe(typed);
  });

  test.each(['01-A', '01-a.md', './01-a', 'issues/01-a.md', 'a'])('%s is an unknown id with a suggestion', (typed) => {
    const [found, ...others] = mistakes({ '01-a.md': issueText(`depends-on: [${typed}]\n`) });
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      message: `\`depends-on\` names an unknown Issue: \`${typed}\``,
      hint: 'did you mean `01-a`?',
    });
  });
});

describe('C023 names that are illegal or escape the folder', () => {
  test.each([
    ['01-fix login.md', '01-fix-login.md'],
    ['01-a..b.md', '01-a-b.md'],
    ['01-a.lock.md', '01-a-lock.md'],
    ['01--x.md', '01-x.md'],
    ['01-ünï.md', '01-uni.md'],
    ['01-Login.md', '01-login.md'],
    ['01-日本.md', '01-issue.md'],
    ['01-.md', '01-issue.md'],
    [`01-${'a'.repeat(300)}.md`, `01-${'a'.repeat(60)}.md`],
    ['0000000000001-a.md', '01-a.md'],
    ['01-a\nb.md', '01-a-b.md'],
    ['01-a@{1}.md', '01-a-1.md'],
    ['01-\u001b[31m.md', '01-31m.md'],
    ['06 fix login.md', '06-fix-login.md'],
    ['08_store.md', '08-store.md'],
    ['09.md', '09-issue.md'],
    ['01-login.MD', '01-login.md'],
  ])('%j is refused, suggesting %s', (name, suggestion) => {
    const [found, ...others] = mistakes({ [`issues/${name}`]: issueText() });
    expect(others).toEqual([]);
    expect(found?.file).toBe(`docs/specs/auth/issues/${name}`);
    expect(found?.hint).toBe(`rename it to ${suggestion}`);
  });

  test('a suggestion is never a name that is taken', () => {
    const found = mistakes({ '01-a b.md': issueText(), '01-a-b.md': issueText() });
    expect(found.map((d) => d.hint)).toEqual(['rename it to 01-a-b-2.md']);
  });

  test('a path out of the folder is ignored, not read', () => {
    const { spec } = parse({ '../../x/issues/01-a.md': issueText(), 'issues/../../x/01-a.md': issueText() });
    expect(spec.issues).toEqual([]);
    const other = { path: 'docs/specs/oath/issues/01-a.md', bytes: Buffer.from(issueText()) };
    const result = parseSpecFolder({ slug: slug('auth'), files: [...files({}), other] });
    expect(result.ok ? result.value.spec.ignored : []).toEqual([
      { path: other.path, reason: 'outside the folder of the Spec' },
    ]);
  });

  test('two Issues with one number are refused, however it is written', () => {
    const found = mistakes({ '1-a.md': issueText(), '01-b.md': issueText(), '2-c.md': issueText() });
    expect(found.map((d) => [d.message, d.hint])).toEqual([
      ['number 1 is also used by docs/specs/auth/issues/01-b.md', 'rename one of them, for example to 03-a.md'],
    ]);
  });

  test('a Spec name that cannot be one gets a suggestion', () => {
    expect(checkSpecSlug('auth')).toEqual({ ok: true, value: 'auth' });
    for (const [name, suggestion] of [
      ['my spec', 'my-spec'],
      ['../x', 'x'],
      ['Ünï', 'uni'],
      ['..', 'my-spec'],
    ] as const) {
      const result = checkSpecSlug(name);
      expect(result.ok ? undefined : result.failure.hint).toBe(`rename the folder to ${suggestion}`);
    }
  });
});

describe('C051 gates of an Issue', () => {
  test.each(['gates: []\n', 'gates:\n', 'gates: [""]\n', 'gates: [{run: x}]\n'])('%j is refused', (line) => {
    const found = mistakes({ '01-a.md': issueText(line) });
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({
      file: 'docs/specs/auth/issues/01-a.md',
      line: 3,
      message: expect.stringContaining('`gates`') as string,
    });
  });

  test('a gate that giro.toml does not have is pointed at, naming the Issue', () => {
    const parsed = parse({ '01-a.md': issueText('gates: [test, reviw]\n'), '02-b.md': issueText() });
    const found = checkGates(parsed, ['test', 'review']);
    expect(found.map((d) => [d.line, underlined(d), d.message, d.hint])).toEqual([
      [
        3,
        'reviw',
        '`gates` of Issue 01-a names a gate that giro.toml does not have: `reviw`',
        'did you mean `review`? gates of giro.toml: test, review',
      ],
    ]);
  });
});

describe('fields', () => {
  test('every field comes out as written', () => {
    const { spec, places } = parse({
      '01-a.md': issueText(),
      '02-b.md': `---
state: in-progress
depends-on: [01]
touches: ["src/**", 'docs/*.md']
resources: postgres
max-attempts: 2
gates: [review]
tests:
  - test/**
proof: red-green
gap: 1
attempt: 3
phase: judging
---
# Second #

text
`,
    });
    expect(spec.issues[1]).toEqual({
      id: '02-b',
      path: 'docs/specs/auth/issues/02-b.md',
      title: 'Second',
      body: '# Second #\n\ntext\n',
      state: 'in-progress',
      dependsOn: ['01-a'],
      touches: ['src/**', 'docs/*.md'],
      resources: ['postgres'],
      maxAttempts: 2,
      gap: 1,
      gates: ['review'],
      tests: ['test/**'],
      proof: 'red-green',
      checkpoint: { attempt: 3, phase: 'judging' },
      history: '',
    });
    const [[id, place] = []] = places.get(spec.issues[1]?.id ?? (slug('x') as never))?.dependsOn ?? [];
    expect([id, place?.line, place?.column, place?.length]).toEqual(['01-a', 3, 14, 2]);
  });

  test('a checkpoint counts only in progress, and only whole', () => {
    const states = ['ready', 'in-progress'].map(
      (state) => `---\nstate: ${state}\nattempt: 1\nphase: working\n---\ntext\n`,
    );
    const half = '---\nstate: in-progress\nattempt: 1\n---\ntext\n';
    const { spec } = parse({ '01-a.md': states[0] ?? '', '02-b.md': states[1] ?? '', '03-c.md': half });
    expect(spec.issues.map((issue) => issue.checkpoint)).toEqual([
      undefined,
      { attempt: 1, phase: 'working' },
      undefined,
    ]);
  });

  test.each([
    ['max-attempts: 0\n', '`max-attempts` is `0`, not a whole number above zero'],
    ['max-attempts: "2"\n', '`max-attempts` is `2`, not a whole number above zero'],
    ['max-attempts: 1.5\n', '`max-attempts` is `1.5`, not a whole number above zero'],
    ['max-attempts:\n', '`max-attempts` is empty, not a whole number above zero'],
    ['max-attempts: 1e9\n', '`max-attempts` is `1e9`, not a whole number above zero'],
    ['gap: -1\n', '`gap` is `-1`, not a whole number above zero'],
    ['touches: [/etc/passwd]\n', '`touches` entry `/etc/passwd` is not relative to the repository'],
    ['touches: ["~/x"]\n', '`touches` entry `~/x` is not relative to the repository'],
    ['touches: ["src/../../x"]\n', '`touches` entry `src/../../x` leaves the repository with ..'],
    ['tests: [../x]\n', '`tests` entry `../x` leaves the repository with ..'],
    ['touches: src/a, src/b\n', '`touches` holds several entries in one text: `src/a, src/b`'],
    ['touches: {a: b}\n', '`touches` holds a mapping, not a text'],
    ['resources: [[a]]\n', '`resources` holds a list, not a text'],
    ['driver: codex\n', '`driver` is not available in this version'],
    ['proof: green\n', '`proof` is `green`'],
    ['Touches: [a]\n', 'unknown key `Touches`'],
    ['owner: me\n', 'unknown key `owner`'],
    ['__proto__: x\n', 'unknown key `__proto__`'],
    ['gap: 1\ngap: 2\n', 'the same key stands here a second time'],
    ['touches: &a [x]\n', 'anchors, aliases and tags are not supported'],
    ['? gap\n: 1\n', 'this is not a plain key'],
    ['[gap]: 1\n', 'this is not a plain key'],
  ])('%j is refused', (line, message) => {
    expect(mistakes({ '01-a.md': issueText(line) }).map((d) => d.message)).toEqual([message]);
  });

  test.each([
    ['{state: ready}\n', 'the frontmatter is not a list of keys'],
    ['- state\n', 'the frontmatter is not a list of keys'],
    ['state\n', 'the frontmatter is not a list of keys'],
    ['', 'the frontmatter has no `state`'],
    ['# only a comment\n', 'the frontmatter has no `state`'],
    ['state:\n', '`state` is empty'],
    ['state: [ready]\n', '`state` is a list'],
    ['state: |\n  ready\n', '`state` is `ready⏎`'],
    ['state: >-\n  ready\n', '`state` is `ready`'],
    ['state: Ready\n', '`state` is `Ready`'],
    ['state: draft\n', '`state` is `draft`'],
  ])('frontmatter %j is refused', (yaml, message) => {
    expect(mistakes({ '01-a.md': `---\n${yaml}---\ntext\n` }).map((d) => d.message)).toEqual([message]);
  });

  test.each([
    '',
    '\n\n',
    '# Only a heading\n',
    '# A\n\n## Acceptance\n\n<!-- say how -->\n',
    '# A\n\n## History\n\n### Attempt 1\n',
  ])('a body of %j has no text', (body) => {
    expect(mistakes({ '01-a.md': `---\nstate: ready\n---\n${body}` }).map((d) => d.message)).toEqual([
      'the Issue has no text',
    ]);
  });

  test('a comment that is never closed is text', () => {
    expect(mistakes({ '01-a.md': issueText('', '# A\n\n<!-- hint -->\n<!-- do it\n') })).toEqual([]);
  });

  test('a title comes from the first heading outside code, else from the name', () => {
    const titles = [
      '```\n# no\n```\n# Yes  ##\ntext',
      'text',
      '#no\n\n# \u001b[31mred\u0007',
      '## Second\n# First\n\nx\n',
    ].map((body, index) => [`0${index + 1}-log-in.md`, issueText('', body)] as const);
    const { spec } = parse(Object.fromEntries(titles));
    expect(spec.issues.map((issue) => issue.title)).toEqual(['Yes', 'log-in', '[31mred', 'First']);
  });

  test('SPEC.md is required, and found under another case', () => {
    const only = (path: string) =>
      parseSpecFolder({ slug: slug('auth'), files: [{ path, bytes: Buffer.from('# A\n') }] });
    const [missing, other] = [only('docs/specs/auth/x.md'), only('docs/specs/auth/spec.md')];
    expect(missing.ok ? [] : missing.failure.diagnostics).toEqual([
      {
        file: 'docs/specs/auth/SPEC.md',
        message: 'the Spec has no SPEC.md',
        hint: 'write it: a heading and the goal in prose, such as\n# auth\nWhat is wanted.',
      },
    ]);
    expect(other.ok ? '' : other.failure.diagnostics[0]?.hint).toBe('rename docs/specs/auth/spec.md');
  });

  test('SPEC.md without frontmatter is a draft; with it, its keys are read', () => {
    expect(parse({}).spec).toMatchObject({
      slug: 'auth',
      folder: 'docs/specs/auth',
      title: 'Auth',
      state: 'draft',
      dependsOn: [],
    });
    const text =
      '---\nstate: active\ndepends-on: [storage, 01-old]\nvalue: 2.5\n---\n# A\n\ntext\n\n## History\n\n### x\n';
    const { spec, dependsOnPlaces } = parse({ 'SPEC.md': text });
    expect(spec).toMatchObject({
      state: 'active',
      dependsOn: ['storage', '01-old'],
      value: 2.5,
      body: '# A\n\ntext\n\n',
    });
    expect([...dependsOnPlaces.values()].map((place) => [place.line, place.column])).toEqual([
      [3, 14],
      [3, 23],
    ]);
  });

  test.each([
    ['state: ready\n', '`state` is `ready`'],
    ['value: high\n', '`value` is `high`, not a number'],
    ['value: .inf\n', '`value` is `.inf`, not a number'],
    ['depends-on: auth\n', 'the Spec depends on itself'],
    ['depends-on: [A B]\n', '`depends-on` holds `A B`, not the name of a Spec'],
    ['touches: [a]\n', 'unknown key `touches`'],
  ])('SPEC.md with %j is refused', (line, message) => {
    expect(mistakes({ 'SPEC.md': `---\n${line}---\n# A\n` }).map((d) => d.message)).toEqual([message]);
  });
});

describe('hostile files', () => {
  test('invalid UTF-8 is refused at its place', () => {
    const bytes = Buffer.concat([Buffer.from(issueText('', '# A\n\nab')), Buffer.from([0xc3, 0x28, 0x0a])]);
    expect(mistakes({ '01-a.md': bytes })).toEqual([
      expect.objectContaining({ line: 6, column: 3, message: 'the file is not valid UTF-8' }),
    ]);
  });

  test.each([
    ['in the frontmatter', '---\n<<<<<<< HEAD\nstate: ready\n=======\nstate: done\n>>>>>>> other\n---\ntext\n', 2],
    [
      'around everything',
      '<<<<<<< HEAD\n---\nstate: ready\n---\n=======\n---\nstate: done\n---\n>>>>>>> other\ntext\n',
      1,
    ],
    [
      'in the body',
      issueText('', '# A\r\n\r\n<<<<<<< HEAD\r\na\r\n||||||| base\r\n=======\r\nb\r\n>>>>>>> other\r\n'),
      6,
    ],
  ])('merge-conflict markers %s are named', (_, text, line) => {
    expect(mistakes({ '01-a.md': text })).toEqual([
      expect.objectContaining({ line, message: 'the file holds merge-conflict markers (<<<<<<<, =======, >>>>>>>)' }),
    ]);
  });

  test('a sample conflict in a code block is text', () => {
    const body = '# A\n\n```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n```\n';
    expect(parse({ '01-a.md': issueText('', body) }).spec.issues[0]?.body).toBe(body);
  });

  test('too large files and frontmatter are refused', () => {
    expect(mistakes({ '01-a.md': issueText('', 'x'.repeat(1024 * 1024)) })[0]?.message).toBe(
      'the file is larger than 1024 KiB',
    );
    const large = 'the frontmatter is larger than 64 KiB or 1000 lines';
    expect(mistakes({ '01-a.md': issueText(`touches: [${'x'.repeat(65_536)}]\n`) })[0]?.message).toBe(large);
    expect(mistakes({ '01-a.md': issueText('\n'.repeat(1_001)) })[0]?.message).toBe(large);
  });

  test.each(['[', '{', '- ', '? ', '- - [', '[ "]", ', '["[", ', "{'}': "])(
    '%j repeated does not exhaust the stack',
    (part) => {
      const yaml = `touches:\n  ${part.repeat(Math.floor(60_000 / part.length))}\n`;
      expect(mistakes({ '01-a.md': issueText(yaml) })[0]?.message).toBe('the frontmatter is nested too deeply');
    },
  );

  test('the deepest staircase of indentation ends in a mistake, not in a crash', () => {
    const steps = Array.from({ length: 400 }, (_, index) => `${' '.repeat(index)}${'- '.repeat(20)}a:\n`).join('');
    expect(mistakes({ '01-a.md': issueText(`touches:\n${steps.slice(0, 60_000)}\n`) })).not.toEqual([]);
  });

  test('bodies made to be slow are read in time', () => {
    for (const part of ['```a\n', '<!--', '~~~~ x\n```` y\n', '# \n', '<<<<<<< \n']) {
      const started = performance.now();
      parse({ '01-a.md': issueText('', `text\n${part.repeat(Math.floor(1_000_000 / part.length))}`) });
      expect(performance.now() - started).toBeLessThan(15_000);
    }
  });
});

test('a rendered set of mistakes', () => {
  const found = mistakes({
    '01-store.md': issueText(),
    '02-api.md': '---\nstate: ready\t# soon\ndepends-on: [01, 03-iu]\n---\n# API\n\ntext\n',
    '03-ui.md': '---\nstate: redy\nmax-atempts: 2\n---\n# UI\n\ntext\n',
  });
  expect(renderDiagnostics(found)).toMatchInlineSnapshot(`
    "docs/specs/auth/issues/02-api.md:3:18: \`depends-on\` names an unknown Issue: \`03-iu\`
      3 | depends-on: [01, 03-iu]
        |                  ^^^^^
      fix: did you mean \`03-ui\`?

    docs/specs/auth/issues/03-ui.md:2:8: \`state\` is \`redy\`
      2 | state: redy
        |        ^^^^
      fix: did you mean \`ready\`? allowed: ready, in-progress, done, needs-human, wontfix

    docs/specs/auth/issues/03-ui.md:3:1: unknown key \`max-atempts\`
      3 | max-atempts: 2
        | ^^^^^^^^^^^
      fix: did you mean \`max-attempts\`? allowed keys: state, depends-on, touches, resources, max-attempts, gates, tests, driver, proof, gap, attempt, phase

    3 problems in 2 files
    "
  `);
});
