import { test } from 'vitest';
import { commitOf, makeRepository, openRepository } from '../rig/repository.js';
test('x', async () => {
  const repository = await makeRepository();
  const git = await openRepository(repository);
  const side = await commitOf(git, { a: '1' }, git.user.head);
  const merge = await git.writeCommit({ tree: git.emptyTree, parents: [git.user.head, side], message: 'joined', at: 0 });
  await git.moveRef('refs/heads/giro/s1', merge, null);
  console.log(await repository.git('cat-file', '-p', merge), await repository.git('log', '--graph', '--oneline', merge));
  console.log(await git.user.logGraph('refs/heads/giro/s1'));
});
