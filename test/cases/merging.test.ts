import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeBarrier } from '../rig/fifo.js';
import { eventsOf, makeProject, unchangedBy } from '../rig/giro.js';
import { openRepository } from '../rig/repository.js';
import { scaled } from '../rig/scale.js';

test('C058 a conflict leaves nothing behind, and the innocent land', async () => {
  const project = await makeProject({
    files: { 'line.txt': 'base\n' },
    issues: { '01-a': {}, '02-b': {}, '03-c': {} },
    // B has its try before A lands and never resolves; C is last.
    agent: [
      'case "$GIRO_ISSUE" in',
      '01-a) echo a > line.txt ;;',
      '02-b) while [ "$GIRO_ATTEMPT" = 1 ] && [ ! -f "$HOME/a-landed" ]; do sleep 0.05; done; if [ "$GIRO_ATTEMPT" = 1 ]; then echo b > line.txt; fi; echo "$GIRO_ATTEMPT" > b.txt ;;',
      '03-c) while [ ! -f "$HOME/b-done" ]; do sleep 0.05; done; echo c > c.txt ;;',
      'esac',
    ].join('\n'),
  });
  const started = project.start(['implement', 's1', '--json', '-c', '3']);
  await started.event('issue.integrated', (event) => event.issue === '01-a');
  await writeFile(join(project.home, 'a-landed'), '');
  await started.event('issue.escalated', (event) => event.issue === '02-b');
  await writeFile(join(project.home, 'b-done'), '');
  const run = await started.ended;
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'issue.integrated').map((event) => event.issue)).toEqual(['01-a', '03-c']);
  expect(eventsOf(run, 'candidate.conflicted')[0]).toMatchObject({ issue: '02-b', files: ['line.txt'] });
  expect(await project.issueFile('02-b')).toContain('line.txt: conflicts');
  expect(await project.show('giro/s1', 'line.txt')).toBe('a');
  expect(await project.git('grep', '-l', '<<<<<<<', 'giro/s1').catch(() => 'none')).toBe('none');
  const gitFiles = await readdir(join(project.path, '.git'), { recursive: true });
  expect(gitFiles.filter((name) => /(?:^|\/)MERGE_(?:HEAD|MSG|MODE)$/.test(name))).toEqual([]);
});

test.each(['pre-merge-commit', 'commit-msg', 'reference-transaction'])(
  'C059 a hook %s that refuses is not run, and nothing is lost',
  async (hook) => {
    const project = await makeProject({ issues: { '01-a': {}, '02-b': {} } });
    await mkdir(join(project.path, '.git/hooks'), { recursive: true });
    await writeFile(
      join(project.path, '.git/hooks', hook),
      '#!/bin/sh\ntouch "$(dirname "$0")/../../hook-ran"\nexit 1\n',
      { mode: 0o755 },
    );
    const run = await unchangedBy(project, () => project.giro(['implement', 's1']));
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(/hooks? .*(not run|never run|runs none)/i);
  },
);

test('C060 two branches that are green alone and red together: the second is sent back with the error', async () => {
  const project = await makeProject({
    files: { 'lib.sh': 'foo() { :; }\n' },
    issues: { '01-a': {}, '02-b': {} },
    agent: [
      'case "$GIRO_ISSUE-$GIRO_ATTEMPT" in',
      '01-a-*) sed -i s/foo/bar/ lib.sh ;;',
      '02-b-1) while [ ! -f "$HOME/go" ]; do sleep 0.05; done; printf ". ./lib.sh\\nfoo\\n" > new.sh ;;',
      '02-b-*) cat > "$HOME/prompt"; printf ". ./lib.sh\\nbar\\n" > new.sh ;;',
      'esac',
    ].join('\n'),
    verify: 'test = "test ! -f new.sh || bash -eu new.sh"',
  });
  const started = project.start(['implement', 's1', '--json', '-c', '2']);
  const first = await started.event('issue.integrated', (event) => event.issue === '01-a');
  await writeFile(join(project.home, 'go'), '');
  const rejected = await started.event('candidate.rejected');
  expect(rejected).toMatchObject({ issue: '02-b', tip: first.commit });
  const run = await started.ended;
  expect(run.code).toBe(0);
  expect(await readFile(join(project.home, 'prompt'), 'utf8')).toMatch(/foo: command not found/);
  expect(eventsOf(run, 'attempt.started').filter((event) => event.issue === '02-b')[1]?.base).toBe(first.commit);
});

test('C060 unsolved, it ends with exit 2 and the tip of the first', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {} },
    agent:
      'if [ "$GIRO_ISSUE" = 02-b ]; then while [ ! -f "$HOME/go" ]; do sleep 0.05; done; fi\necho "$GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"\n',
    verify: 'test = "! test -f 01-a.txt || ! test -f 02-b.txt"',
  });
  const started = project.start(['implement', 's1', '--json', '-c', '2']);
  await started.event('issue.integrated', (event) => event.issue === '01-a');
  await writeFile(join(project.home, 'go'), '');
  const run = await started.ended;
  expect(run.code).toBe(2);
  expect(await project.show('giro/s1', '02-b.txt')).toBeNull();
});

test('C061 what is red together never stays: the next lands on the verified tip, and a re-run verifies again', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {}, '03-c': {} },
    agent: [
      'case "$GIRO_ISSUE" in',
      '01-a) echo a > a.txt ;;',
      '02-b) : < "$HOME/a-landed"; [ "$GIRO_ATTEMPT" = 1 ] && echo b > b.txt || true ;;',
      '03-c) : < "$HOME/b-asks"; echo c > c.txt ;;',
      'esac',
    ].join('\n'),
    budget: 'attempts = 1',
    verify: 'test = "if [ -f a.txt ] && [ -f b.txt ]; then echo red >> \\"$HOME/red\\"; exit 1; fi"',
  });
  const aLanded = await makeBarrier(join(project.home, 'a-landed'));
  const bAsks = await makeBarrier(join(project.home, 'b-asks'));
  const started = project.start(['implement', 's1', '--json', '-c', '3']);
  const first = await started.event('issue.integrated', (event) => event.issue === '01-a');
  await aLanded.open();
  expect(await started.event('candidate.rejected')).toMatchObject({ issue: '02-b', tip: first.commit });
  await started.event('issue.escalated', (event) => event.issue === '02-b');
  // Whatever was recorded meanwhile, its code is the code that was verified last.
  const code = (ref: string): Promise<string> => project.git('diff', '--name-only', 'main', ref, '--', ':!docs/specs');
  expect(await code('giro/s1')).toBe('a.txt');
  await bAsks.open();
  const run = await started.ended;
  expect(run.code).toBe(2);
  const landed = eventsOf(run, 'issue.integrated');
  expect(landed.map((event) => event.issue)).toEqual(['01-a', '03-c']);
  expect(await project.git('merge-base', '--is-ancestor', first.commit, 'giro/s1')).toBe('');
  expect(await code('giro/s1')).toBe('a.txt\nc.txt');
  const b = await project.git('rev-parse', 'giro-issue/s1/02-b');
  await expect(project.git('merge-base', '--is-ancestor', b, 'giro/s1')).rejects.toThrow();

  // Nothing is changed, and B's agent adds nothing: what it left is verified with A again, and never counts as merged.
  const reds = async (): Promise<number> => (await readFile(join(project.home, 'red'), 'utf8')).split('\n').length;
  const before = await reds();
  const again = await project.implement();
  expect(again.code).toBe(2);
  expect(eventsOf(again, 'issue.integrated')).toEqual([]);
  expect(eventsOf(again, 'run.finished')[0]).toMatchObject({ exit: 2, done: 2, total: 3 });
  expect(await reds()).toBeGreaterThan(before);
  expect(await code('giro/s1')).toBe('a.txt\nc.txt');
  expect(await project.issueFile('02-b')).toContain('state: needs-human');
});

test(
  'C062 two Issues that finish at the same moment land one at a time, each verified as it lands',
  async () => {
    for (let round = 0; round < scaled(2, 10); round += 1) {
      const project = await makeProject({
        issues: { '01-a': {}, '02-b': {} },
        agent:
          'touch "$HOME/at-$GIRO_ISSUE"\nwhile [ ! -f "$HOME/at-01-a" ] || [ ! -f "$HOME/at-02-b" ]; do sleep 0.02; done\necho x > "$GIRO_ISSUE.txt"\n',
        verify: `[verify.merged]\nrun = ${JSON.stringify(`sleep ${scaled('0.3', '3')}; git ls-tree -r HEAD -- . | grep -v docs/specs | git hash-object --stdin >> "$HOME/verified"; date +%s%N >> "$HOME/times"`)}\non = ["integration"]\n[verify.test]\nrun = "true"`,
      });
      const run = await project.implement('-c', '2');
      expect(run.code).toBe(0);
      const landed = eventsOf(run, 'issue.integrated');
      const verified = eventsOf(run, 'candidate.made');
      expect(landed).toHaveLength(2);
      // The second was tried on the first's landed commit, or tried again there; what landed is what was verified.
      for (const event of landed) {
        const codeTree = (
          await project.git('log', '-1', '--format=%(trailers:key=Giro-Code-Tree,valueonly)', event.commit)
        ).trim();
        expect(verified.some((candidate) => candidate.issue === event.issue && candidate.tree === codeTree)).toBe(true);
      }
      const order = run.events
        .filter((event) => event.type === 'candidate.made' || event.type === 'issue.integrated')
        .map((event) => event.type);
      expect(order).toEqual(['candidate.made', 'issue.integrated', 'candidate.made', 'issue.integrated']);
    }
  },
  scaled(60_000, 240_000),
);

test.each(['ours', 'theirs'])(
  'C063 a conflict that is "solved" by taking %s drops nothing that landed',
  async (side) => {
    const base = "import { test } from 'node:test';\n\ntest('base', () => {});\n";
    const withTest = (name: string) => `${base}\ntest('${name}', () => {});\n`;
    const project = await makeProject({
      files: { 'm.test.mjs': base, 'm.sh': 'base() { :; }\n', 'a.txt': withTest('a'), 'b.txt': withTest('b') },
      issues: { '01-a': {}, '02-b': {} },
      // A's test and B's stand at the same place. When B has to resolve that, it takes one side as a whole, on its second try
      // A's function goes instead, and only then both are kept.
      agent: [
        'case "$GIRO_ISSUE-$GIRO_ATTEMPT" in',
        '01-a-*) cp a.txt m.test.mjs; echo "a() { :; }" >> m.sh; echo ". ./m.sh; a" > a.check ;;',
        '02-b-1) while [ ! -f "$HOME/a-landed" ]; do sleep 0.05; done; cp b.txt m.test.mjs ;;',
        `02-b-2) cp ${side === 'ours' ? 'b' : 'a'}.txt m.test.mjs ;;`,
        '02-b-3) cp a.txt m.test.mjs; tail -n 2 b.txt >> m.test.mjs; echo "base() { :; }" > m.sh ;;',
        '02-b-4) echo "a() { :; }" >> m.sh ;;',
        'esac',
      ].join('\n'),
      budget: 'attempts = 4\nno-progress = 9',
      verify: 'test = "node --test && for check in *.check; do test ! -f $check || sh $check || exit 1; done"',
    });
    const started = project.start(['implement', 's1', '--json', '-c', '2']);
    await started.event('issue.integrated', (event) => event.issue === '01-a');
    await writeFile(join(project.home, 'a-landed'), '');
    const run = await started.ended;
    expect(run.code, run.stdout).toBe(0);
    expect(eventsOf(run, 'candidate.conflicted')).toMatchObject([{ issue: '02-b', files: ['m.test.mjs'] }]);
    const reds = eventsOf(run, 'attempt.judged').filter(({ issue, verdict }) => issue === '02-b' && verdict === 'fail');
    // Taking B's side loses A's test; taking A's leaves nothing of B. Then A's own check misses its function.
    expect(reds.map(({ attempt }) => attempt)).toEqual([2, 3]);
    const [oneSide, noFunction] = reds.map(({ findings }) => findings.map(({ message }) => message).join('\n'));
    expect(oneSide).toContain(side === 'ours' ? 'what landed there is dropped: keep both' : 'nothing was changed');
    expect(noFunction).toContain('test');
    const merged = (await project.show('giro/s1', 'm.test.mjs')) ?? '';
    expect(merged).toContain("test('a'");
    expect(merged).toContain("test('b'");
    expect(await project.show('giro/s1', 'm.sh')).toContain('a()');
  },
);

test('C063 nor does one whose marks are left in the file first, and one side taken by the next attempt', async () => {
  const project = await makeProject({
    files: { 'line.txt': 'base\n' },
    issues: { '01-a': {}, '02-b': {} },
    agent: [
      'case "$GIRO_ISSUE-$GIRO_ATTEMPT" in',
      '01-a-*) echo a >> line.txt ;;',
      '02-b-1) while [ ! -f "$HOME/a-landed" ]; do sleep 0.05; done; echo b >> line.txt ;;',
      '02-b-2) grep -q "<<<<<<<" line.txt && echo more > more.txt ;;',
      "02-b-3) printf 'base\\nb\\n' > line.txt ;;",
      "02-b-4) printf 'base\\na\\nb\\n' > line.txt ;;",
      'esac',
    ].join('\n'),
    budget: 'attempts = 4\nno-progress = 9',
  });
  const started = project.start(['implement', 's1', '--json', '-c', '2']);
  await started.event('issue.integrated', (event) => event.issue === '01-a');
  await writeFile(join(project.home, 'a-landed'), '');
  const run = await started.ended;
  expect(run.code, run.stdout).toBe(0);
  const reds = eventsOf(run, 'attempt.judged').filter(({ issue, verdict }) => issue === '02-b' && verdict === 'fail');
  expect(reds.map(({ attempt, findings }) => [attempt, findings.map(({ rule }) => rule)])).toEqual([
    [2, ['conflict']],
    [3, ['overruled']],
  ]);
  expect(await project.show('giro/s1', 'line.txt')).toBe('base\na\nb');
});

test('a conflict that an agent never touched is no work of a person: an answer starts the next agent', async () => {
  const project = await makeProject({
    files: { 'line.txt': 'base\n' },
    issues: { '01-a': {}, '02-b': {} },
    agent: [
      'case "$GIRO_ISSUE-$GIRO_ATTEMPT" in',
      '01-a-*) echo a >> line.txt ;;',
      '02-b-1) while [ ! -f "$HOME/a-landed" ]; do sleep 0.05; done; echo b >> line.txt ;;',
      '02-b-2) exit 1 ;;',
      "02-b-3) printf 'base\\na\\nb\\n' > line.txt ;;",
      'esac',
    ].join('\n'),
    budget: 'attempts = 2',
  });
  const started = project.start(['implement', 's1', '--json', '-c', '2']);
  await started.event('issue.integrated', (event) => event.issue === '01-a');
  await writeFile(join(project.home, 'a-landed'), '');
  expect((await started.ended).code).toBe(2);
  const again = await project.implement();
  expect(again.code, again.stdout).toBe(0);
  expect(eventsOf(again, 'attempt.started')).toMatchObject([{ issue: '02-b', attempt: 3 }]);
  expect(await project.issueFile('02-b')).not.toContain('by hand');
});

test('C064 while the target ref is locked nothing is merged and nothing is deleted', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: 'while [ ! -f "$HOME/go" ]; do sleep 0.05; done\necho x > a.txt\n',
  });
  const started = project.start(['implement', 's1', '--json']);
  const attempt = await started.event('attempt.started');
  await writeFile(join(project.path, '.git/refs/heads/giro/s1.lock'), '');
  await writeFile(join(project.home, 'go'), '');
  const run = await started.ended;
  expect(run.code).not.toBe(0);
  expect(eventsOf(run, 'issue.integrated')).toEqual([]);
  expect(await project.show('giro-issue/s1/01-a', 'a.txt')).toBe('x');
  const intact = async (): Promise<void> => {
    expect(await readFile(join(attempt.worktree, 'a.txt'), 'utf8')).toBe('x\n');
    expect(await project.show('giro-issue/s1/01-a', 'a.txt')).toBe('x');
  };
  await intact();
  expect((await project.giro(['clean', '--yes', '--save'])).code).toBe(0);
  await intact();
  await rm(join(project.path, '.git/refs/heads/giro/s1.lock'));
  expect((await project.giro(['clean', '--yes', '--save'])).code).toBe(0);
  await intact();
  // Once it can move, what was kept lands; only then is it behind the branch, and may go.
  expect((await project.implement()).code).toBe(0);
  expect(await project.git('merge-base', '--is-ancestor', 'giro-issue/s1/01-a', 'giro/s1')).toBe('');
  expect((await project.giro(['clean', '--yes'])).code).toBe(0);
  expect(await project.git('for-each-ref', 'refs/heads/giro-issue/')).toBe('');
  expect(await project.show('giro/s1', 'a.txt')).toBe('x');
});

// Two pointers of one submodule are a conflict in test/worktree/git-merge.test.ts: no agent gets so far as to move one.
test('C065 conflicts of every kind are conflicts with the right path', async () => {
  const project = await makeProject({
    files: {
      ...{ 'binary.bin': 'a\0b', 'gone.txt': 'base\n', 'name ä.txt': 'base\n', 'README.md': '# T\n' },
      'old.txt': Array.from({ length: 20 }, (_, line) => `line ${String(line)}\n`).join(''),
    },
    issues: {
      '01-a': { frontmatter: 'touches: [binary.bin, gone.txt, old.txt]' },
      '02-b': {},
    },
    budget: 'attempts = 1',
    agent: [
      'if [ "$GIRO_ISSUE" = 01-a ]; then printf "a\\0c" > binary.bin; rm gone.txt; echo mine > "name ä.txt"; mkdir both; echo 1 > both/add.txt; mv old.txt left.txt',
      'else while [ ! -f "$HOME/go" ]; do sleep 0.05; done; printf "a d" > binary.bin; echo changed > gone.txt; echo theirs > "name ä.txt"; mkdir both; echo 2 > both/add.txt; mv old.txt right.txt; fi',
    ].join('\n'),
  });
  const started = project.start(['implement', 's1', '--json', '-c', '2']);
  await started.event('issue.integrated', (event) => event.issue === '01-a');
  await writeFile(join(project.home, 'go'), '');
  const run = await started.ended;
  expect(run.code).toBe(2);
  expect([...(eventsOf(run, 'candidate.conflicted')[0]?.files ?? [])].sort()).toEqual([
    'binary.bin',
    'both/add.txt',
    'gone.txt',
    'left.txt',
    'name ä.txt',
    'old.txt',
    'right.txt',
  ]);
});

test('C068 merged, different and existing are decided by exit codes', async () => {
  const project = await makeProject({ issues: {} });
  await project.git('switch', '-q', '-c', 'side');
  await project.write('x.txt', 'x');
  const side = await project.commit('side');
  await project.git('switch', '-q', 'main');
  const main = await project.head();
  const git = await openRepository(project);
  expect(await git.isAncestor(side, main)).toBe(false);
  expect(await git.isAncestor(main, side)).toBe(true);
  expect((await git.diffTrees(main, side)).map((change) => change.path)).toContain('x.txt');
  expect(await git.diffTrees(main, main)).toEqual([]);
  expect(await git.readRef('refs/heads/nowhere')).toBeNull();
});
