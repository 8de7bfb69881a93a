import { parseIssueId, parseSpecSlug, type IssueId, type Issue, type Oid, type SpecSlug } from '../../src/issue.js';
import { firstIntake, laterIntake, type Intake } from '../../src/store/intake.js';
import { intakeCommit, type BranchFacts } from '../../src/store/integration.js';
import type { Journal } from '../../src/store/journal.js';
import { openJournal } from '../../src/store/standing.js';
import { readSpecAt, readSpecFiles, type SpecFile } from '../../src/store/read.js';
import { readBranches } from '../../src/store/facts.js';
import { integrationRef, issueRef } from '../../src/store/refs.js';
import { codeTree, joinTree, specsTree } from '../../src/store/tree.js';
import type { OpenedGit, TreeTarget } from '../../src/worktree/git-types.js';
import { journalGit } from '../mutations/parts.js';
import { FakeClock } from '../rig/clock.js';
import { makeRepository, openRepository, type TestRepository } from '../rig/repository.js';

/** Name of the Spec in these tests. */
export const spec: SpecSlug = slug('s1');
const folder = `docs/specs/${spec}`;

/** A repository with a Spec on its integration branch, and what the engine's store does there. */
export interface SpecRig {
  readonly repository: TestRepository;
  readonly git: OpenedGit;
  readonly clock: FakeClock;
  readonly facts: BranchFacts;
  /** Takes in what the person's folder holds (`null`: there is no folder), as a run does that starts. */
  takeIn(
    files: Readonly<Record<string, string | Buffer>> | null,
    options?: { readonly answers?: boolean },
  ): Promise<Intake>;
  tip(): Promise<Oid>;
  branch(id: string): Promise<Oid | null>;
  issue(id: string): Promise<Issue>;
  /** Opens the record of an Issue as the next run would. */
  journal(id: string, options?: { readonly fresh?: boolean }): Promise<Journal>;
  /** A code tree: that of a commit with files changed. */
  codeWith(commit: Oid, files: Readonly<Record<string, string | null>>): Promise<Oid>;
  /** Commits on a branch as somebody else would, with any files. */
  commitOn(ref: string, files: Readonly<Record<string, string | null>>, message?: string): Promise<Oid>;
  /** Puts a commit with this code on the integration branch, as a landing does. */
  land(files: Readonly<Record<string, string | null>>): Promise<Oid>;
  read(commit: Oid, path: string): Promise<string | null>;
}

/** Text of an Issue file. */
export function issueText(state = 'ready', more = '', body = 'Do it.'): string {
  return `---\nstate: ${state}\n${more}---\n# An Issue\n\n${body}\n`;
}

/** Text of SPEC.md. */
export function specText(state = 'draft', body = 'What is wanted.'): string {
  return `---\nstate: ${state}\n---\n# A Spec\n\n${body}\n`;
}

/** Path of an Issue file. */
export function pathOf(id: string): string {
  return `${folder}/issues/${id}.md`;
}

/** Files of the Spec's folder, by path: SPEC.md and these Issues. */
export function specFiles(
  issues: Readonly<Record<string, string>>,
  specFile = specText(),
): Readonly<Record<string, string>> {
  const entries = Object.entries(issues).map(([id, text]): [string, string] => [pathOf(id), text]);
  return { [`${folder}/SPEC.md`]: specFile, ...Object.fromEntries(entries) };
}

/** Makes a repository; with `files`, the Spec's first snapshot is taken. */
export async function makeSpec(
  setup: {
    readonly files?: Readonly<Record<string, string | Buffer>>;
    readonly code?: Readonly<Record<string, string>>;
  } = {},
): Promise<SpecRig> {
  const repository = await makeRepository({ files: setup.code ?? { 'README.md': '# Test\n' } });
  const git = await openRepository(repository);
  const clock = new FakeClock();
  const facts = {
    ...{ git, spec, base: await repository.head(), giro: '0.0.0' },
    now: () => clock.now(),
    iso: () => clock.iso(),
  };
  const rig = new Rig(repository, git, clock, facts);
  if (setup.files !== undefined) await rig.takeIn(setup.files);
  return rig;
}

class Rig implements SpecRig {
  readonly repository: TestRepository;
  readonly git: OpenedGit;
  readonly clock: FakeClock;
  readonly facts: BranchFacts;

  constructor(repository: TestRepository, git: OpenedGit, clock: FakeClock, facts: BranchFacts) {
    this.repository = repository;
    this.git = git;
    this.clock = clock;
    this.facts = facts;
  }

  async takeIn(
    files: Readonly<Record<string, string | Buffer>> | null,
    options: { readonly answers?: boolean } = {},
  ): Promise<Intake> {
    const { git, facts, clock } = this;
    const tip = await git.readRef(integrationRef(spec));
    const checkout = files === null ? null : filesOf(files);
    const at = clock.iso();
    const intake =
      tip === null
        ? firstIntake(checkout ?? [], at)
        : await laterIntake(git, {
            spec,
            tip,
            branches: await readBranches(git, spec),
            folder,
            checkout,
            answers: options.answers === true ? (await readSpecFiles(git, tip, spec)).map(({ path }) => path) : [],
            at,
          });
    if (tip !== null && intake.edited.length === 0 && intake.answered.length === 0) return intake;
    const kind = tip === null ? 'snapshot' : 'import';
    const commit = await intakeCommit(facts, { parent: tip ?? facts.base, read: checkout, intake, kind });
    await this.#move(integrationRef(spec), commit, tip);
    return intake;
  }

  async tip(): Promise<Oid> {
    const tip = await this.git.readRef(integrationRef(spec));
    if (tip === null) throw new Error('there is no integration branch');
    return tip;
  }

  branch(id: string): Promise<Oid | null> {
    return this.git.readRef(issueRef(spec, issueId(id)));
  }

  async issue(id: string): Promise<Issue> {
    const parsed = await readSpecAt(this.git, await this.tip(), spec);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.failure));
    const issue = parsed.value.spec.issues.find((one) => one.id === id);
    if (issue === undefined) throw new Error(`no Issue ${id}`);
    return issue;
  }

  async journal(id: string, options: { readonly fresh?: boolean } = {}): Promise<Journal> {
    const { git, clock } = this;
    const [issue, tip, branch] = [await this.issue(id), await this.tip(), await this.branch(id)];
    return openJournal({ git: journalGit(git), spec, clock }, { issue, tip, branch, fresh: options.fresh ?? false });
  }

  async codeWith(commit: Oid, files: Readonly<Record<string, string | null>>): Promise<Oid> {
    const { git } = this;
    return this.#edit(await codeTree(git, (await git.readCommit(commit)).tree), files);
  }

  async commitOn(ref: string, files: Readonly<Record<string, string | null>>, message = 'by hand'): Promise<Oid> {
    const { git, clock } = this;
    const parent = await git.readRef(ref);
    const from = parent ?? (await this.tip());
    const tree = await this.#edit((await git.readCommit(from)).tree, files);
    const commit = await git.writeCommit({ tree, parents: [from], message, at: clock.now() });
    await this.#move(ref, commit, parent);
    return commit;
  }

  async land(files: Readonly<Record<string, string | null>>): Promise<Oid> {
    const { git, clock } = this;
    const tip = await this.tip();
    const specs = await specsTree(git, (await git.readCommit(tip)).tree);
    const tree = await joinTree(git, await this.codeWith(tip, files), specs);
    const commit = await git.writeCommit({
      tree,
      parents: [tip],
      message: 'landed\n\nGiro-Checkpoint: integrated',
      at: clock.now(),
    });
    await this.#move(integrationRef(spec), commit, tip);
    return commit;
  }

  async read(commit: Oid, path: string): Promise<string | null> {
    const entry = await this.git.readPath(commit, path);
    return entry === null ? null : (await this.git.readBlob(entry.oid)).toString('utf8');
  }

  async #edit(tree: Oid, files: Readonly<Record<string, string | null>>): Promise<Oid> {
    const edits = new Map<string, TreeTarget | null>();
    for (const [path, text] of Object.entries(files)) {
      edits.set(path, text === null ? null : { mode: '100644', oid: await this.git.writeBlob(text) });
    }
    return this.git.editTree(tree, edits);
  }

  async #move(ref: string, to: Oid, from: Oid | null): Promise<void> {
    const moved = await this.git.moveRef(ref, to, from);
    if (!moved.ok) throw new Error(JSON.stringify(moved.failure));
  }
}

/** All files of the Spec's folder at a commit, as text. */
export async function filesAt(rig: SpecRig, commit: Oid): Promise<Readonly<Record<string, string>>> {
  const files = await readSpecFiles(rig.git, commit, spec);
  return Object.fromEntries(files.map((file) => [file.path, file.bytes.toString('utf8')]));
}

/** An Issue's id in these tests. */
export function issueId(text: string): IssueId {
  const id = parseIssueId(text);
  if (id === undefined) throw new Error(text);
  return id;
}

function slug(text: string): SpecSlug {
  const parsed = parseSpecSlug(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
}

function filesOf(files: Readonly<Record<string, string | Buffer>>): readonly SpecFile[] {
  return Object.entries(files).map(([path, content]) => ({ path, bytes: Buffer.from(content) }));
}
