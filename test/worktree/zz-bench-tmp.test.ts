import { test } from 'vitest';
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startRun, issueId } from '/work/main/test/rig/folders.js';
import { makeRepository } from '/work/main/test/rig/repository.js';
test('bench', async () => {
  for (const n of [1000, 10000]) {
    const files: Record<string,string> = {};
    const text = 'x'.repeat(60) + '\n';
    for (let i = 0; i < n; i++) files[`d${Math.floor(i/20)%50}/e${Math.floor(i/20)}/f${i}.txt`] = `${i}\n` + text.repeat(32);
    const repository = await makeRepository({ files });
    const rig = await startRun(repository);
    const head = await repository.head();
    const { tree } = await rig.git.readCommit(head);
    const plain: number[] = [], ours: number[] = [], prep: number[] = [], back: number[] = [], chk: number[] = [];
    let prev = null as any;
    for (let i = 0; i < 7; i++) {
      let t = performance.now();
      execFileSync('git', ['worktree', 'add', '-q', '--detach', join(repository.folder, 'p'), head], { cwd: repository.path });
      execFileSync('git', ['worktree', 'remove', '--force', join(repository.folder, 'p')], { cwd: repository.path });
      plain.push(performance.now() - t);
      t = performance.now();
      const w = await rig.worktrees.prepare(issueId(`${i+1}-x`), head, tree);
      if (!w.ok) throw new Error(JSON.stringify(w));
      const p = performance.now() - t;
      for (let k = 0; k < 20; k++) await writeFile(join(w.value.folder, `d0/e0/f${k}.txt`), `changed ${i} ${k}`);
      await new Promise(r => setTimeout(r, 50));
      const t2 = performance.now();
      await rig.worktrees.takeBack(w.value);
      rig.worktrees.release(w.value);
      const b = performance.now() - t2;
      prep.push(p); back.push(b); ours.push(p + b);
      const t3 = performance.now();
      await rig.checkouts.withCheckout(tree, async () => {});
      chk.push(performance.now() - t3);
    }
    const med = (a: number[]) => [...a.slice(1)].sort((x, y) => x - y)[3]!.toFixed(1);
    console.log(n, 'plain', med(plain), 'ours', med(ours), 'prepare', med(prep), 'back', med(back), 'ratio', (Number(med(ours)) / Number(med(plain))).toFixed(2), 'checkout', med(chk), 'first', prep[0]!.toFixed(0), chk[0]!.toFixed(0));
    await rig.worktrees.close();
  }
}, 200000);
