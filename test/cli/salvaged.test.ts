/** `giro clean --salvage` on the built program: what was saved can be seen, brought back, and thrown away with care. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { asking, cleaned, worktreeOf } from '../rig/clean.js';
import { unchangedBy, type GiroRun, type Project } from '../rig/giro.js';

const ref = 'refs/giro/salvage/s1/01-a/1';
let project: Project;

/** One Issue was given up with a file in its worktree that no commit had; it was saved. */
beforeEach(async () => {
  project = await asking();
  const folder = await worktreeOf(project, '01-a');
  await writeFile(join(folder, 'idea.txt'), 'an idea\nof two lines\n');
  expect((await project.giro(['answer', 's1/01', '--wontfix'])).code).toBe(0);
  await cleaned(project, '--yes', '--save');
  expect(existsSync(folder)).toBe(false);
});

function salvage(...words: readonly string[]): Promise<GiroRun> {
  return project.giro(['clean', '--salvage', ...words]);
}

describe('what was saved', () => {
  test('is listed with its Issue, when, why and files, for people and for scripts', async () => {
    const shown = await unchangedBy(project, () => salvage());
    expect(shown.stdout).toMatch(/^s1\/01-a\/1 {2}20\S+Z {2}2 files, \+3 -0$/m);
    expect(shown.stdout).toContain('\n    giro: files found in the worktree of 01-a\n');
    // The branch of the Issue, with the whole of its work.
    expect(shown.stdout).toMatch(/^s1\/01-a\/2 {2}.* 2 files, /m);
    const json = JSON.parse((await salvage('s1', '--json')).stdout) as { salvage: object[] };
    expect(json.salvage[0]).toMatchObject({
      ref,
      spec: 's1',
      issue: '01-a',
      alsoIn: null,
      files: [{ path: '01-a.txt' }, { path: 'idea.txt' }],
    });
    expect((await salvage('other')).stdout).toBe('nothing of other is saved\n');
  });

  test('is shown as a list of files and as a patch, by its short and by its full name', async () => {
    const stat = await unchangedBy(project, () => salvage('show', 's1/01-a/1'));
    expect(stat.stdout).toContain('added        +2 -0  idea.txt');
    const patch = await salvage('show', ref, '--patch');
    expect(patch.stdout).toContain('\n+an idea\n+of two lines\n');
  });

  test('that is not there is an error that names what is', async () => {
    const run = await salvage('show', 's1/01-a/7');
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('known: s1/01-a/1, s1/01-a/2');
    expect((await salvage('look', 's1/01-a/1')).stderr).toContain('"look" is none of show, restore and drop');
  });
});

describe('restoring', () => {
  test('makes a new branch, never moves one, and leaves the checkout alone', async () => {
    const run = await unchangedBy(project, () => salvage('restore', 's1/01-a/1'));
    expect(run.stdout).toContain('git switch giro-salvage/s1/01-a/1');
    expect(await project.show('giro-salvage/s1/01-a/1', 'idea.txt')).toBe('an idea\nof two lines');
    expect((await salvage('restore', 's1/01-a/1')).stdout).toContain('has it already');

    await project.git('branch', '-f', 'giro-salvage/s1/01-a/1', 'main');
    const again = await salvage('restore', 's1/01-a/1');
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(await project.git('rev-parse', 'giro-salvage/s1/01-a/1')).toBe(await project.head());
  });

  test('fills a new or an empty folder, and none with a file in it', async () => {
    const target = join(project.folder, 'rescued');
    const run = await unchangedBy(project, () => salvage('restore', 's1/01-a/1', '../rescued'));
    expect(run.code).toBe(0);
    expect(await readFile(join(target, 'idea.txt'), 'utf8')).toBe('an idea\nof two lines\n');
    expect(existsSync(join(target, '.git'))).toBe(false);

    await writeFile(join(target, 'idea.txt'), 'mine now\n');
    const again = await salvage('restore', 's1/01-a/1', '../rescued');
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(await readFile(join(target, 'idea.txt'), 'utf8')).toBe('mine now\n');

    await mkdir(join(project.folder, 'empty'));
    expect((await salvage('restore', 's1/01-a/1', '../empty')).code).toBe(0);
    const inside = await salvage('restore', 's1/01-a/1', '.git/rescued');
    expect(inside.stderr).toContain('is inside the git folder of the repository');
    expect(existsSync(join(project.path, '.git/rescued'))).toBe(false);
  });
});

describe('dropping', () => {
  test('what is nowhere else needs --yes, and says how to have it back', async () => {
    const asked = await salvage('drop', 's1/01-a/1');
    expect([asked.code, asked.stdout]).toEqual([1, '']);
    expect(asked.stderr).toContain('what refs/giro/salvage/s1/01-a/1 holds is nowhere else');
    const oid = await project.git('rev-parse', ref);

    const done = await unchangedBy(project, () => salvage('drop', 's1/01-a/1', '--yes'));
    expect(done.stdout).toContain(`git update-ref ${ref} ${oid}`);
    expect(await project.git('for-each-ref', '--format=%(refname)', 'refs/giro')).toBe('refs/giro/salvage/s1/01-a/2');
  });

  test('what a branch has too goes at once, and with giro clean by itself', async () => {
    await project.git('branch', 'mine', ref);
    await project.git('tag', 'other', 'refs/giro/salvage/s1/01-a/2');
    expect((await salvage('drop', 's1/01-a/1')).code).toBe(0);
    const json = await cleaned(project, '--yes');
    expect(json.items.filter(({ removed }) => removed).map(({ kind, why }) => `${kind}: ${why}`)).toEqual([
      'salvage: every commit of it is in refs/tags/other',
    ]);
    expect(await project.git('for-each-ref', 'refs/giro')).toBe('');
  });

  test('is refused while a giro holds the Spec', async () => {
    await writeFile(join(project.path, '.git/giro/locks/s1.json'), '{}');
    const run = await salvage('drop', 's1/01-a/1', '--yes');
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('the lock of s1 cannot be read');
    expect(await project.git('rev-parse', ref)).toMatch(/^[0-9a-f]{40}$/);
  });
});
