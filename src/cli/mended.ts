/** What a person changed in the worktrees of Issues that ask: without a commit it is in no ref. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Issue, Oid, SpecSlug } from '../issue.js';
import { kindOf } from '../platform/files.js';
import { removeTree } from '../platform/folders.js';
import type { IssueBranches } from '../store/facts.js';
import { readHistory, wasTakenBack } from '../store/history.js';
import { codeTree } from '../store/tree.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { surveyFindings, surveyFolder } from '../worktree/guard.js';
import { presentTrees } from '../worktree/known.js';
import { lockReason } from '../worktree/admin.js';
import { notesOn, readFacts } from '../worktree/facts.js';
import { ignorePattern, madeBySetup } from '../worktree/setup.js';
import { submodulesOf, withPointers } from '../worktree/submodules.js';

/** Gives the paths of the Issues that ask and whose files differ from what is on their branch. Moves no ref. */
export async function mendedIssues(
  git: OpenedGit,
  asked: { readonly spec: SpecSlug; readonly issues: readonly Issue[]; readonly branches: IssueBranches },
): Promise<readonly string[]> {
  const { spec, issues, branches } = asked;
  // What an agent left in a folder that was not taken back is nobody's answer.
  const resting = issues.filter(({ state, history }) => state === 'needs-human' && wasTakenBack(readHistory(history)));
  if (resting.length === 0) return [];
  const linked = await git.listWorktrees();
  const mended: string[] = [];
  for (const { id, path } of resting) {
    const branch = branches.get(id);
    const folder = linked.find(({ locked }) => locked?.trim() === lockReason(spec, id))?.folder;
    if (branch === undefined || folder === undefined) continue;
    if (await differs(git, folder, branch)) mended.push(path);
  }
  return mended;
}

async function differs(git: OpenedGit, folder: string, branch: Oid): Promise<boolean> {
  if ((await kindOf(folder)) !== 'folder') return false;
  const notes = notesOn(folder);
  const facts = await readFacts(notes.facts);
  if (facts?.filled !== true) return false;
  const made = await madeBySetup(notes.stamp);
  // git is to look at nothing that could run something; a run says what is wrong there.
  const submodules = await submodulesOf(git, facts.shown);
  const paths = submodules.map(({ path }) => path);
  const survey = await surveyFolder(folder, new Set(made));
  const repositories = survey.repositories.filter((path) => !paths.some((one) => path.startsWith(`${one}/`)));
  if (surveyFindings({ ...survey, repositories }).length > 0) return false;
  const scratch = await mkdtemp(join(tmpdir(), 'giro-look-'));
  try {
    const left = [...made, ...paths].map(ignorePattern);
    const files = await git.snapshotFolder(folder, join(scratch, 'index'), left);
    const tree = await withPointers(git, files, { folder, submodules });
    // A conflict that was shown to an agent and left as it was is giro's too.
    const own = [(await git.readCommit(branch)).tree, ...(await presentTrees(git, [facts.shown]))];
    const code = await codeTree(git, tree);
    return !(await Promise.all(own.map((one) => codeTree(git, one)))).includes(code);
  } finally {
    await removeTree(scratch);
  }
}
