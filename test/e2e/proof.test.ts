import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeProject, unchangedBy, type Project } from '../rig/giro.js';

const gate = `test = "grep -q by 01-a.txt 2>/dev/null || test ! -e 02-b.txt"`;

async function proved(): Promise<Project> {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    verify: gate,
  });
  const run = await project.implement();
  expect(run.code).toBe(0);
  return project;
}

test('a proof holds, offline, for the Spec and for one Issue; its notes are statements of in-toto', async () => {
  const project = await proved();
  const whole = await unchangedBy(project, () => project.giro(['proof', 's1', '--json']));
  expect(whole.code).toBe(0);
  const told = JSON.parse(whole.stdout) as { holds: boolean; statement: Record<string, unknown> };
  expect(told.holds).toBe(true);
  expect(told.statement).toMatchObject({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'giro/s1', digest: { gitCommit: await project.git('rev-parse', 'giro/s1') } }],
    predicate: { issues: [{ issue: '01-a', attempts: 1 }, { issue: '02-b' }], gates: [{ gate: 'test' }] },
  });
  expect(JSON.parse(await project.git('notes', '--ref=giro', 'show', 'giro/s1'))).toEqual(told.statement);
  const issue = await project.giro(['proof', 's1/02']);
  expect(issue.code).toBe(0);
  expect(issue.stdout.trimEnd().split('\n').at(-1)).toMatch(/^proof: s1\/02 holds at [0-9a-f]{7}$/);
});

test('one byte of the tree is enough: the proof does not hold, and the file is named', async () => {
  const project = await proved();
  // As somebody would do it who wants the proof to stay: the validated commit keeps its message.
  const folder = join(project.folder, 'tampering');
  await project.git('worktree', 'add', '-q', '--detach', folder, 'giro/s1');
  await project.write('../tampering/01-a.txt', 'by 01-a.\n');
  await project.git('-C', folder, 'commit', '-q', '--amend', '--no-edit', '-a');
  await project.git('update-ref', 'refs/heads/giro/s1', await project.git('-C', folder, 'rev-parse', 'HEAD'));
  await project.git('worktree', 'remove', '--force', folder);
  const run = await project.giro(['proof', 's1']);
  expect(run.code).toBe(2);
  expect(run.stdout).toMatch(/BROKEN {2}the tip: tree [0-9a-f]{7} is not the proven [0-9a-f]{7}: modified 01-a\.txt/);
  expect(run.stdout.trimEnd().split('\n').at(-1)).toMatch(/^no proof: the tip of giro\/s1/);
});

test('a gate that demands something else now makes the proof stale, by name', async () => {
  const project = await proved();
  const policy = await readFile(join(project.path, 'giro.toml'), 'utf8');
  await project.write('giro.toml', policy.replace(gate, 'test = "true"'));
  const run = await project.giro(['proof', 's1']);
  expect(run.code).toBe(2);
  expect(run.stdout).toContain('BROKEN  the gates of giro.toml: test demands something else now');
});

test('a note that was changed is evidence: it is told and left, a missing one is made anew', async () => {
  const project = await proved();
  await project.git('notes', '--ref=giro', 'add', '-f', '-m', '{}', 'giro/s1');
  const told = await project.giro(['proof', 's1']);
  expect(told.code).toBe(2);
  expect(told.stdout).toMatch(
    /BROKEN {2}the notes: the note of \w{7} says something else than its commit \(_type: nothing, the commit says "https:/,
  );
  const [, fix] = /go on with: git (notes --ref giro remove \w{7}) && giro proof s1$/m.exec(told.stdout) ?? [];
  await project.git(...(fix ?? '').split(' '));
  expect((await project.giro(['proof', 's1'])).code).toBe(0);
  await project.git('update-ref', '-d', 'refs/notes/giro');
  const again = await project.giro(['proof', 's1']);
  expect(again.code).toBe(0);
  expect(again.stdout).toContain('made    3 missing notes in refs/notes/giro');
  expect(JSON.parse(await project.git('notes', '--ref=giro', 'show', 'giro/s1'))).toHaveProperty('predicateType');
});

test('--rerun runs the command gates again, and a gate that is red now is no proof', async () => {
  const project = await proved();
  expect((await project.giro(['proof', 's1', '--rerun'])).stdout).toContain('holds   gate test again: passed');
  const fickle = await makeProject({ issues: { '01-a': {} }, verify: `test = "test ! -e ${project.folder}/red"` });
  expect((await fickle.implement()).code).toBe(0);
  await project.write('../red', '');
  const run = await fickle.giro(['proof', 's1', '--rerun']);
  expect(run.code).toBe(2);
  expect(run.stdout).toContain('BROKEN  gate test again: gate test failed: exit 1');
});

test('what was never validated, or is not there, has no proof', async () => {
  const project = await makeProject({ issues: { '01-a': {} }, verify: 'test = "test ! -e 01-a.txt"' });
  const before = await project.giro(['proof', 's1']);
  expect(before.code).toBe(1);
  expect(before.stderr).toContain('there is no branch giro/s1');
  expect((await project.implement()).code).toBe(2);
  const run = await project.giro(['proof', 's1']);
  expect(run.code).toBe(2);
  expect(run.stdout).toContain('BROKEN  validation: nothing on giro/s1 was validated');
});

test('a clone says what it lacks: the branch it only fetched, or the history below a shallow border', async () => {
  const project = await proved();
  const clone = async (...options: readonly string[]): Promise<string> => {
    const folder = join(project.folder, `clone${options.join('')}`);
    await project.git('clone', '-q', ...options, '--no-single-branch', `file://${project.path}`, folder);
    await copyFile(join(project.path, 'giro.toml'), join(folder, 'giro.toml'));
    return folder;
  };
  const whole = await clone();
  const fetched = await project.giro(['proof', 's1'], { cwd: whole });
  expect(fetched.code).toBe(1);
  const [, command] = /git (branch giro\/s1 origin\/giro\/s1)$/m.exec(fetched.stderr) ?? [];
  await project.git('-C', whole, ...(command ?? '').split(' '));
  const there = await project.giro(['proof', 's1'], { cwd: whole });
  expect(there.stdout).toContain('the notes: 0 as the commits say, 3 missing');
  expect(there.code).toBe(0);
  const shallow = await clone('--depth=1');
  await project.git('-C', shallow, 'branch', 'giro/s1', 'origin/giro/s1');
  const cut = await project.giro(['proof', 's1'], { cwd: shallow });
  expect(cut.code).toBe(1);
  expect(cut.stderr).toMatch(/^giro: the repository lacks a part of its history: [^]*git fetch --unshallow/);
});
