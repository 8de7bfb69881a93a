import { access, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseSpecFolder } from '../../src/config/issue-file.js';
import type { SpecSlug } from '../../src/issue.js';
import { parseSpecSlug } from '../../src/issue.js';
import { eventsOf, makeProject, type GiroRun, type Project } from '../rig/giro.js';

const slug = parseSpecSlug('s1') as SpecSlug;

function read(files: Readonly<Record<string, string>>): ReturnType<typeof parseSpecFolder> {
  const all = { 'SPEC.md': '# Spec\n', ...files };
  return parseSpecFolder({
    slug,
    files: Object.entries(all).map(([name, text]) => ({ path: `docs/specs/s1/${name}`, bytes: Buffer.from(text) })),
  });
}

const text = '---\nstate: ready\ndepends-on: []\ngates: [test]\n---\n# One\n\nDo it.\n';

test('C001 what was done to a parsed Issue does not show in the next parse of the same text', () => {
  const first = read({ 'issues/01-a.md': text });
  if (!first.ok) throw new Error('refused');
  const issue = first.value.spec.issues[0] as unknown as Record<'gates' | 'dependsOn', string[]>;
  issue.gates.push('more');
  issue.dependsOn.push('02-b');
  for (const again of [read({ 'issues/01-a.md': text }), read({ 'issues/01-a.md': text, 'issues/02-b.md': text })]) {
    if (!again.ok) throw new Error('refused');
    for (const issue of again.value.spec.issues) expect([issue.gates, issue.dependsOn]).toEqual([['test'], []]);
  }
});

test.each(['---js', '---javascript', '--- js', '---JS'])(
  'C002 frontmatter that starts with %s runs nothing and is refused',
  async (fence) => {
    const project = await makeProject({ issues: {} });
    const marker = join(project.folder, 'marker');
    await project.write(
      'docs/specs/s1/issues/01-a.md',
      `${fence}\n{ x: require("fs").writeFileSync(${JSON.stringify(marker)}, "") }\n---\n# One\n\nDo it.\n`,
    );
    for (const args of [
      ['status'],
      ['status', 's1'],
      ['implement', 's1', '--dry-run'],
      ['implement', 's1', '--json'],
    ]) {
      const run = await project.giro(args);
      expect(run.code).toBe(1);
      expect(run.stderr).toContain('only YAML frontmatter is supported');
    }
    await expect(access(marker)).rejects.toThrow();
  },
);

test('C003 ids mean what the author typed', () => {
  const issues = Object.fromEntries(
    Array.from({ length: 10 }, (_, index) => [`issues/${String(index + 1).padStart(2, '0')}-x.md`, text]),
  );
  const parsed = read({
    ...issues,
    'issues/09-x.md': text.replace('depends-on: []', 'depends-on: [01, 08, 010]'),
    'issues/10-x.md': text.replace('depends-on: []', 'depends-on: 07'),
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.failure));
  const { spec } = parsed.value;
  expect(spec.issues.find((issue) => issue.id === '09-x')?.dependsOn).toEqual(['01-x', '08-x', '10-x']);
  expect(spec.issues.find((issue) => issue.id === '10-x')?.dependsOn).toEqual(['07-x']);
});

test('C004 whatever stands before the first fence, an Issue never loses its dependencies without a word', async () => {
  const depending = '---\nstate: ready\ndepends-on: [01]\n---\n# Two\n\nDo it.\n';
  for (const [name, content] of Object.entries({
    bom: `\uFEFF${depending}`,
    crlf: depending.replaceAll('\n', '\r\n'),
  })) {
    const parsed = read({ 'issues/01-a.md': text, [`issues/02-${name}.md`]: content });
    expect(parsed.ok && parsed.value.spec.issues[1]?.dependsOn, name).toEqual(['01-a']);
  }
  const project = await makeProject({ issues: { '01-a': {} } });
  for (const content of [`\n${depending}`, depending.replaceAll('---', '----')]) {
    await project.write('docs/specs/s1/issues/02-b.md', content);
    await refusedWith(project, 'docs/specs/s1/issues/02-b.md');
  }
  // One that ends with its fence is read like any other: what it misses is a text, not its fields.
  const ending = '---\nstate: ready\ndepends-on: [01, 77]\n---';
  await project.write('docs/specs/s1/issues/02-b.md', ending);
  const { stderr } = await refusedWith(project, '02-b.md: the Issue has no text');
  expect(stderr).toContain('unknown Issue: `77`');
});

test.each([
  ['"01, 02"', '01, 02'],
  ['[{id: 01}]', 'id'],
  ['[[01]]', '01'],
])('C005 depends-on: %s is refused with its place, and the file stays as it is', async (value, entry) => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {}, '03-c': { frontmatter: `depends-on: ${value}` } },
  });
  const before = await readFile(join(project.path, 'docs/specs/s1/issues/03-c.md'), 'utf8');
  const run = await project.implement();
  expect(run.code).toBe(1);
  expect(run.stderr).toContain('docs/specs/s1/issues/03-c.md:3:');
  expect(run.stderr).toContain('depends-on');
  expect(run.stderr).toContain(entry);
  expect(run.stderr).not.toContain('[object Object]');
  expect(await readFile(join(project.path, 'docs/specs/s1/issues/03-c.md'), 'utf8')).toBe(before);
});

test('C005 nothing, one number and one id are documented shapes of depends-on', () => {
  const shape = (value: string): string => text.replace('depends-on: []', `depends-on:${value}`);
  const parsed = read({
    'issues/01-a.md': shape(''),
    'issues/02-b.md': shape(' 1'),
    'issues/03-c.md': shape(' "02-b"'),
  });
  expect(parsed.ok && parsed.value.spec.issues.map((issue) => issue.dependsOn)).toEqual([[], ['01-a'], ['02-b']]);
});

const sample = '```\n---\nstate: ready\ndepends-on: [zzz]\n---\n# Sample\n```\n';

test('C006 the agent gets the whole body, and a sample in it is not a header', async () => {
  const body = `Prose.\n\n---\n\nMore prose.\n\n${sample}`;
  const project = await makeProject({ issues: { '01-a': { body } }, agent: 'cat > "$HOME/prompt"\necho x > a.txt\n' });
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(await readFile(join(project.home, 'prompt'), 'utf8')).toContain(`# Issue 01-a\n\n${body}`);
});

test('C006 a file without a header is refused, not half-parsed', async () => {
  const project = await makeProject({ issues: {} });
  await project.write('docs/specs/s1/issues/01-a.md', 'Prose.\n\n---\ndepends-on: [zzz]\n---\n\nMore.\n');
  await refusedWith(project, 'docs/specs/s1/issues/01-a.md');
});

test('C007 only Issue files are Issues, and what was ignored is said', async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  for (const name of [
    'issues/README.md',
    'issues/_template.md',
    'issues/01-a.md~',
    'issues/.#01-a.md',
    'issues/notes/draft.md',
    'README.md',
  ]) {
    await project.write(`docs/specs/s1/${name}`, '# Not an Issue\n');
  }
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'attempt.started').map((event) => event.issue)).toEqual(['01-a']);
  const notices = eventsOf(run, 'run.notice')
    .map((event) => event.message)
    .join('\n');
  for (const name of ['issues/README.md', '_template.md', '01-a.md~', '.#01-a.md', 'notes/draft.md'])
    expect(notices).toContain(name);
});

test("C008 the person's file is untouched; on the branch only giro's own keys and History differ", async () => {
  const project = await makeProject({ issues: { '08-x': {}, '10-y': {} }, verify: 'test = "! test -f bad"' });
  const before =
    '---\r\n# who asked for it\r\nstate: ready # set by hand\r\ndepends-on: ["08", "010"]\r\ntouches: [ "src/**" ]\r\nmax-attempts: 1\r\n---\r\n# One\r\n\r\nDo it.\r\n';
  await project.write('docs/specs/s1/issues/11-z.md', before);
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(await readFile(join(project.path, 'docs/specs/s1/issues/11-z.md'), 'utf8')).toBe(before);
  const after = await readFile(join(project.path, '.git/HEAD'), 'utf8').then(() =>
    project.git('cat-file', 'blob', 'giro/s1:docs/specs/s1/issues/11-z.md'),
  );
  const [head = ''] = after.split('## History');
  expect(head.trimEnd()).toBe(before.replace('state: ready', 'state: done').trimEnd());
  expect(after.replaceAll('\r\n', '')).not.toContain('\n');
});

test('C008 nor is it by a run after a failure, and by one after a kill in the middle; an unknown field is refused, not dropped', async () => {
  const project = await makeProject({
    issues: { '08-x': {}, '10-y': {} },
    agent: 'if [ -f "$HOME/stay" ]; then sleep 60; fi\necho "$GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"\n',
    verify: 'test = "! test -f \\"$HOME/red\\""',
  });
  const path = 'docs/specs/s1/issues/11-z.md';
  const text = (more: string): string =>
    `---\r\n# who\r\nstate: ready\r\ndepends-on: ["08", "010"]\r\n${more}---\r\n# One\r\n\r\nDo it.\r\n`;
  await project.write(path, text('id: "01"\r\nowner: me\r\ndue: 2026-01-02\r\n'));
  for (const key of ['id', 'owner', 'due']) await refusedWith(project, `unknown key \`${key}\``);
  await project.write(path, text(''));
  const unchanged = async (act: () => Promise<unknown>): Promise<void> => {
    await act();
    expect(await readFile(join(project.path, path), 'utf8')).toBe(text(''));
  };
  await writeFile(join(project.home, 'red'), '');
  await unchanged(async () => expect((await project.implement()).code).toBe(2));
  await writeFile(join(project.home, 'stay'), '');
  await unchanged(async () => {
    const running = project.start(['implement', 's1', '--json']);
    await running.event('attempt.started');
    running.kill('SIGKILL');
    await running.ended;
  });
  await Promise.all(['red', 'stay'].map((name) => rm(join(project.home, name))));
  await unchanged(async () => expect((await project.implement()).code).toBe(0));
  const [head = ''] = (await project.git('cat-file', 'blob', `giro/s1:${path}`)).split('## History');
  expect(head.trimEnd()).toBe(text('').replace('state: ready', 'state: done').trimEnd());
});

async function refusedWith(project: Project, part: string): Promise<GiroRun> {
  const run = await project.implement();
  expect(run.code).toBe(1);
  expect(run.stderr).toContain(part);
  expect(run.stdout).toBe('');
  return run;
}
