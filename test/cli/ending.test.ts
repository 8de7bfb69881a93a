import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { bringIn, endingOf, type EndingParts } from '../../src/cli/ending.js';
import type { IssueFacts } from '../../src/event.js';
import { parseOid, parseSpecSlug, type IssueState } from '../../src/issue.js';
import { emptyState, reduce, type IssueView } from '../../src/state.js';
import { makeRepository, openRepository, type TestRepository } from '../rig/repository.js';
import { issueId } from '../store/rig.js';

const tip = parseOid('abcdef0'.padEnd(40, '1'));

function viewsOf(
  facts: readonly (Partial<IssueFacts> & { readonly name: string })[],
): ReadonlyMap<IssueView['id'], IssueView> {
  const issues = facts.map(({ name, ...more }): IssueFacts => ({
    id: issueId(name),
    title: name,
    state: 'ready',
    attempts: 0,
    wave: 1,
    dependsOn: [],
    ...more,
  }));
  return reduce(emptyState, { v: 1, at: '', run: '', type: 'run.recovered', spec, tip, issues }).issues;
}

const slug = parseSpecSlug('s1');
if (slug === undefined) throw new Error('not a name');
const spec = slug;

function ending(change: Partial<EndingParts>) {
  return endingOf({
    end: { kind: 'needs-human', validate: [], asks: null },
    spec,
    only: null,
    tip,
    states: new Map<IssueView['id'], IssueState>([
      [issueId('01-a'), 'done'],
      [issueId('02-b'), 'ready'],
    ]),
    views: new Map(),
    waivers: [],
    stray: [],
    spent: null,
    stopped: null,
    branches: new Map(),
    bringIn: [],
    ...change,
  });
}

describe('the last lines', () => {
  test('of a proof end with it, behind the way to take it', () => {
    expect(ending({ end: { kind: 'proof', tip }, bringIn: ['take it:  git merge giro/s1'] })).toEqual({
      kind: 'proof',
      summary: 'proof: 1 of 2 Issues integrated; giro/s1 is at abcdef0, verified',
      exit: 0,
      lines: ['take it:  git merge giro/s1', 'proof: 1 of 2 Issues integrated; giro/s1 is at abcdef0, verified'],
    });
  });

  test('of a Spec whose Issues are all given up ask for no answer', () => {
    const { lines } = ending({ states: new Map<IssueView['id'], IssueState>([[issueId('01-a'), 'wontfix']]) });
    expect(lines.slice(-2)).toEqual([
      'every Issue is given up: set state: ready in one of their files or write another, then: giro implement s1',
      'needs a human: nothing is left to run, and nothing is done',
    ]);
  });

  test('of a proof name each red that a person accepted', () => {
    const waivers = [{ where: '01-a', finding: '1a2b3c4d', by: 'answer' as const, what: 'a test was removed' }];
    expect(ending({ end: { kind: 'proof', tip }, waivers }).lines).toEqual([
      'waiver  01-a [1a2b3c4d] accepted by answer: a test was removed',
      'proof, 1 waiver: 1 of 2 Issues integrated; giro/s1 is at abcdef0, verified',
    ]);
  });

  test('of a stop say by what, and how to go on', () => {
    const { exit, lines } = ending({ end: { kind: 'stopped' }, stopped: { why: 'SIGTERM', first: null } });
    expect([exit, lines.at(-1)]).toEqual([2, 'stopped: SIGTERM; go on with: giro implement s1']);
  });

  test('name who asks what, and for whom each of the others really waits', () => {
    const views = viewsOf([
      { name: '01-a', state: 'needs-human', question: 'Which\u001b[2J one?' },
      { name: '02-b', dependsOn: [issueId('01-a')] },
      { name: '03-c', dependsOn: [issueId('02-b')] },
      { name: '04-d', state: 'done' },
    ]);
    const { exit, lines } = ending({ views });
    expect(exit).toBe(2);
    expect(lines).toEqual([
      'asks  01-a: Which\\u{1b}[2J one?',
      '02-b waits for 01-a, which needs a human',
      '03-c waits for 01-a, which needs a human',
      '1 of 2 Issues integrated; giro/s1 is at abcdef0',
      'read it: giro status s1/01-a, answer it: giro answer s1/01-a "<text>", then: giro implement s1',
      'needs a human: 01-a: Which\\u{1b}[2J one?',
    ]);
  });

  test('of a red validation say what is red', () => {
    const validate = [{ message: 'gate all failed' }];
    const { lines } = ending({ end: { kind: 'needs-human', validate, asks: null } });
    expect(lines[0]).toBe('validate: gate all failed');
    expect(lines.at(-1)).toBe('needs a human: the Spec as a whole is red');
  });

  test('of a Spec that asks something itself say what', () => {
    const asks = { cause: 'questions' as const, question: 'Which\u0007 database?' };
    const { exit, lines } = ending({ end: { kind: 'needs-human', validate: [], asks } });
    expect(exit).toBe(2);
    expect(lines.at(-1)).toBe('needs a human: the Spec: Which\\u{7} database? (questions)');
  });

  test('of a held landing also name who asks', () => {
    const views = viewsOf([{ name: '01-a', state: 'needs-human', question: 'Which?' }]);
    const { exit, lines } = ending({ end: { kind: 'held', message: 'giro/s1 is checked out in /p' }, views });
    expect(exit).toBe(2);
    expect(lines).toContain('asks  01-a: Which?');
    expect(lines.at(-1)).toBe('needs a human: giro/s1 is checked out in /p');
  });

  test('name files that changed in the checkout, and always say something', () => {
    expect(ending({ stray: ['a\u0007.txt'] }).lines[0]).toBe(
      'changed in your checkout during the run, not by giro: a\\u{7}.txt',
    );
    expect(ending({}).lines.at(-1)).toMatch(/^needs a human: \S/);
  });
});

describe('the way to take the result', () => {
  async function project(files: Readonly<Record<string, string>> = { 'a.txt': 'a\n' }): Promise<TestRepository> {
    const repository = await makeRepository({ files });
    await repository.git('switch', '-q', '-c', 'giro/s1');
    await repository.write('a.txt', 'by giro\n');
    await repository.write('docs/specs/s1/SPEC.md', 'by giro\n');
    await repository.commit('landed');
    await repository.git('switch', '-q', 'main');
    return repository;
  }

  async function linesFor(repository: TestRepository): Promise<readonly string[]> {
    const landed = parseOid(await repository.git('rev-parse', 'giro/s1'));
    return bringIn(await openRepository(repository), 's1', landed);
  }

  /** Types the command that was printed. */
  async function take(repository: TestRepository, lines: readonly string[]): Promise<void> {
    const command = /^take it: {2}(.*?)(?: {3}\(.*)?$/m.exec(lines.join('\n'))?.[1] ?? '';
    const { execFile } = await import('node:child_process');
    const { promisify } = await import('node:util');
    const env = {
      ...repository.own,
      GIT_AUTHOR_NAME: 'P',
      GIT_AUTHOR_EMAIL: 'p@localhost',
      GIT_COMMITTER_NAME: 'P',
      GIT_COMMITTER_EMAIL: 'p@localhost',
    };
    await promisify(execFile)('sh', ['-ec', command], { cwd: repository.path, env, timeout: 20_000 });
  }

  test('is a fast-forward when nothing else happened', async () => {
    const repository = await project();
    const lines = await linesFor(repository);
    expect(lines[1]).toBe('take it:  git merge --ff-only giro/s1   (tried: merges cleanly into main)');
    await take(repository, lines);
    expect(await readFile(join(repository.path, 'a.txt'), 'utf8')).toBe('by giro\n');
    expect(await linesFor(repository)).toEqual(['main has giro/s1 already']);
  });

  test('is a merge when the branch went on, also during the run', async () => {
    const repository = await project();
    const git = await openRepository(repository);
    await repository.write('b.txt', 'mine\n');
    await repository.commit('mine');
    const landed = parseOid(await repository.git('rev-parse', 'giro/s1'));
    const lines = await bringIn(git, 's1', landed);
    expect(lines[1]).toBe('take it:  git merge giro/s1   (tried: merges cleanly into main)');
    await take(repository, lines);
    expect(await readFile(join(repository.path, 'a.txt'), 'utf8')).toBe('by giro\n');
  });

  test('names the files that conflict', async () => {
    const repository = await project();
    await repository.write('a.txt', 'mine\n');
    await repository.commit('mine');
    expect((await linesFor(repository))[1]).toContain('conflicts with main in a.txt');
  });

  test('goes round an uncommitted Spec folder', async () => {
    const repository = await project();
    await repository.write('docs/specs/s1/SPEC.md', 'mine\n');
    const lines = await linesFor(repository);
    expect(lines[1]).toBe('in the way: docs/specs/s1/ is not committed here, and the merge would write there');
    await take(repository, lines);
    expect(await readFile(join(repository.path, 'docs/specs/s1/SPEC.md'), 'utf8')).toBe('by giro\n');
    expect(await repository.git('stash', 'list')).not.toBe('');
  });

  test('goes round a file where the merge needs a folder, and any uncommitted change of what it writes', async () => {
    const repository = await project();
    await repository.write('docs', 'a file of mine\n');
    await repository.write('a.txt', "mine and it's new\n");
    const lines = await linesFor(repository);
    expect(lines[1]).toBe('in the way: a.txt, docs are not committed here, and the merge would write there');
    await take(repository, lines);
    expect(await readFile(join(repository.path, 'a.txt'), 'utf8')).toBe('by giro\n');
  });

  test('is said without a branch too', async () => {
    const repository = await project();
    await repository.git('switch', '-q', '--detach');
    expect((await linesFor(repository))[1]).toContain('merges cleanly into your branch');
  });
});
