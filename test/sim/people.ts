/** What people do in a simulated world: between the runs, and while one goes on. */
import { answerIssue, answerSpec, type GivenAnswer } from '../../src/store/answer.js';
import { readSpecAt } from '../../src/store/read.js';
import type { IssueId, Oid } from '../../src/issue.js';
import type { OpenedGit } from '../../src/worktree/git-types.js';
import { worked } from './code.js';
import { openStore } from './git.js';
import type { Oracle } from './oracle.js';
import { Life } from './process.js';
import { answerOf } from './script.js';
import type { World } from './world.js';

/** A person at the keyboard, now. */
export class Person {
  readonly #world: World;
  readonly #git: OpenedGit;
  readonly #now: () => number;

  constructor(world: World, oracle: Oracle, now: () => number) {
    this.#world = world;
    this.#now = now;
    const life = new Life(now(), { kind: 'none' });
    this.#git = openStore(world.store, life, {
      head: world.head,
      delayMs: () => 0,
      moved: (ref, to, from) => {
        oracle.moved(ref, to, from);
      },
    });
  }

  /** After a run: something is done about what asks, or nothing. */
  async betweenRuns(): Promise<void> {
    for (const issue of this.#asking()) {
      const what = answerOf(this.#world.script, { issue, run: this.#world.run });
      this.#world.say(() => `    person: ${issue}: ${what}`);
      switch (what) {
        case 'run again':
          break;
        case 'answer':
          await this.#answer(issue, 'text');
          break;
        case 'wontfix':
          await this.#answer(issue, 'wontfix');
          break;
        case 'edit':
          this.#edit(issue);
          break;
        case 'commit':
          this.#commit(issue);
          break;
        case 'worktree':
          this.#mend(issue);
          break;
      }
    }
  }

  /** While a run goes on: whoever asks may be answered, and something may be noted on the integration branch. */
  async during(nth: number): Promise<void> {
    if (this.#world.script.chance.is(0.4, 'notes', this.#world.run, nth)) this.#note();
    for (const issue of this.#asking()) {
      if (!this.#world.script.chance.is(0.5, 'answers', issue, this.#world.run, nth)) continue;
      this.#world.say(() => `    person: ${issue}: answers while giro runs`);
      await this.#answer(issue, 'text');
    }
  }

  /** Answers what the Spec as a whole asks. */
  async answerSpec(): Promise<void> {
    const { tip, spec } = await this.#spec();
    if (tip === null || spec === null) return;
    await answerSpec(this.#facts(), { tip, spec, answer: { kind: 'text', text: 'go on', accept: [] } });
  }

  /** A commit of files of the Spec's folder that are none of giro's. */
  #note(): void {
    const { store, tipRef, folder } = this.#world;
    const tip = store.readRef(tipRef);
    if (tip === null) return;
    const note = { mode: '100644', oid: store.writeBlob(`noted ${String(this.#now())}\n`) };
    const tree = store.editTree(store.commit(tip).tree, new Map([[`${folder}/notes.md`, note]]));
    const commit = store.writeCommit({ tree, parents: [tip], message: 'a note\n', at: this.#now() });
    this.#world.say(() => '    person: notes something on the branch');
    store.moveRef(tipRef, commit, tip);
  }

  #asking(): readonly IssueId[] {
    const { store, tipRef } = this.#world;
    const tip = store.readRef(tipRef);
    if (tip === null) return [];
    return this.#world.issuesAt(tip).filter((issue) => this.#world.factsAt(tip, issue)?.state === 'needs-human');
  }

  async #answer(id: IssueId, kind: GivenAnswer['kind']): Promise<void> {
    const { tip, spec } = await this.#spec();
    const issue = spec?.issues.find((one) => one.id === id);
    if (tip === null || spec === null || issue === undefined) return;
    const branch = this.#world.store.readRef(this.#world.branchOf(id));
    const answer = { kind, text: `go on ${String(this.#now())}`, accept: [] };
    const answered = await answerIssue(this.#facts(), { tip, spec, issue, branch, answer });
    if (answered.kind === 'answered') await this.#git.moveRef(this.#world.tipRef, answered.commit, tip);
  }

  async #spec() {
    const tip = this.#world.store.readRef(this.#world.tipRef);
    const read = tip === null ? null : await readSpecAt(this.#git, tip, this.#world.spec);
    return { tip, spec: read?.ok === true ? read.value.spec : null };
  }

  #facts() {
    const iso = (): string => new Date(this.#now()).toISOString();
    return { git: this.#git, base: this.#world.head, spec: this.#world.spec, giro: 'sim', now: this.#now, iso };
  }

  #edit(issue: IssueId): void {
    const path = this.#world.pathOf(issue);
    const text = this.#world.checkout.get(path);
    if (text !== undefined) this.#world.checkout.set(path, `${text}\nMore exactly: ${String(this.#world.run)}.\n`);
  }

  /** A fix on the branch of the Issue. */
  #commit(issue: IssueId): void {
    const { store } = this.#world;
    const ref = this.#world.branchOf(issue);
    const branch = store.readRef(ref);
    if (branch === null) return;
    const { code, tree } = this.#mended(issue, branch);
    if (code === this.#world.code(branch)) return;
    const commit = store.writeCommit({ tree, parents: [branch], message: 'a fix\n', at: this.#now() });
    this.#world.touched.add(issue);
    store.moveRef(ref, commit, branch);
  }

  /** A fix in the worktree of the Issue. */
  #mend(issue: IssueId): void {
    const { folders, script } = this.#world;
    const folder = folders.get(issue);
    if (folder === undefined) return;
    this.#world.touched.add(issue);
    folders.set(issue, { ...folder, files: worked(script, folder.files, byHand(issue)), by: 'person' });
  }

  #mended(issue: IssueId, branch: Oid): { readonly code: Oid; readonly tree: Oid } {
    const { store, script } = this.#world;
    const files = worked(script, this.#world.filesOf(this.#world.code(branch)), byHand(issue));
    const code = store.treeOf(files);
    const specs = store.readPath(branch, 'docs/specs');
    return { code, tree: store.editTree(code, new Map([['docs/specs', specs]])) };
  }
}

function byHand(issue: IssueId) {
  return { issue, attempt: 0, life: 9, play: 'good' } as const;
}
