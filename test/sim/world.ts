/** A simulated world: everything that outlasts a crash of giro, and the notes of whoever watches it. */
import type { IssueId, Oid, SpecSlug } from '../../src/issue.js';
import { parseIssueId, parseSpecSlug } from '../../src/issue.js';
import { baseFiles, type Files } from './code.js';
import { factsOf, type FileFacts } from './record.js';
import type { Play, Script } from './script.js';
import { Store } from './store.js';

/** The folder of an Issue's worktree. */
export interface Folder {
  files: Files;
  /** What giro put there. */
  readonly shown: Files;
  /** Whose the newest changes are. */
  by: 'giro' | 'agent' | 'person';
}

/** What is known of one attempt, whatever giro recorded. */
export interface Start {
  readonly run: number;
  readonly play: Play;
  ended: 'running' | 'ended' | 'stopped';
}

/** What lasts. */
export class World {
  readonly script: Script;
  readonly store = new Store();
  readonly spec: SpecSlug;
  /** The commit the person is on. */
  readonly head: Oid;
  /** `docs/specs/<spec>` of the person's checkout. */
  readonly checkout: Map<string, string>;
  readonly folders = new Map<IssueId, Folder>();
  /** Passes of gates, by gate and tree. */
  readonly passes = new Set<string>();
  /** Code that the gates of a landing passed on, and of the Spec. */
  readonly proven = new Set<Oid>();
  /** How often the gates ran on a tree. */
  readonly judged = new Map<Oid, number>();
  readonly starts = new Map<string, Start>();
  /** Attempts for which a gate could not run, or no folder could be made. */
  readonly broken = new Set<string>();
  /** Issues for which a person did something beside answering. */
  readonly touched = new Set<IssueId>();
  /** Something went wrong with the gates of the Spec or the base, beside the code. */
  readonly wholeTrouble = new Set<string>();
  readonly lines: string[] = [];
  now = Date.UTC(2030, 0, 1);
  run = 0;

  readonly #isTold: boolean;
  readonly #codes = new Map<Oid, Oid>();
  readonly #files = new Map<Oid, Files>();
  readonly #facts = new Map<Oid, FileFacts>();

  constructor(script: Script, isTold: boolean) {
    this.script = script;
    this.#isTold = isTold;
    const spec = parseSpecSlug('s1');
    if (spec === undefined) throw new Error('not a Spec');
    this.spec = spec;
    const tree = this.store.treeOf(baseFiles);
    this.head = this.store.writeCommit({ tree, parents: [], message: 'base\n', at: this.now });
    this.store.moveRef('refs/heads/main', this.head, null);
    this.checkout = new Map([
      [`${this.folder}/SPEC.md`, '---\nstate: draft\n---\n# Spec\n\nAll of it.\n'],
      ...script.issues.map((issue): [string, string] => [this.pathOf(issue.id), fileOf(issue)]),
    ]);
  }

  get folder(): string {
    return `docs/specs/${this.spec}`;
  }

  get tipRef(): string {
    return `refs/heads/giro/${this.spec}`;
  }

  pathOf(issue: IssueId): string {
    return `${this.folder}/issues/${issue}.md`;
  }

  branchOf(issue: IssueId): string {
    return `refs/heads/giro-issue/${this.spec}/${issue}`;
  }

  /** The Issue whose branch a ref is. */
  issueOf(ref: string): IssueId | null {
    const prefix = `refs/heads/giro-issue/${this.spec}/`;
    return ref.startsWith(prefix) ? (parseIssueId(ref.slice(prefix.length)) ?? null) : null;
  }

  /** The code of a commit or tree, without `docs/specs/`. */
  code(of: Oid): Oid {
    return once(this.#codes, of, () => this.store.editTree(of, new Map([['docs/specs', null]])));
  }

  filesOf(tree: Oid): Files {
    return once(
      this.#files,
      tree,
      () => new Map(this.store.files(tree).map(({ path, oid }) => [path, this.store.blob(oid).toString()])),
    );
  }

  /** What an Issue's file says at a commit; `null`: it has none there. */
  factsAt(commit: Oid, issue: IssueId): FileFacts | null {
    const found = this.store.readPath(commit, this.pathOf(issue));
    if (found === null) return null;
    return once(this.#facts, found.oid, () => factsOf(this.store.blob(found.oid).toString()));
  }

  /** All Issues of the Spec at a commit. */
  issuesAt(commit: Oid): readonly IssueId[] {
    const folder = this.store.readPath(commit, `${this.folder}/issues`);
    if (folder === null) return [];
    return [...this.store.tree(folder.oid).keys()].flatMap((name) => parseIssueId(name.replace(/\.md$/, '')) ?? []);
  }

  /** Keeps a line, where somebody wants to read it. */
  say(line: () => string): void {
    if (this.#isTold) this.lines.push(line());
  }
}

function once<T>(known: Map<Oid, T>, of: Oid, make: () => T): T {
  const found = known.get(of) ?? make();
  known.set(of, found);
  return found;
}

/** The name of an attempt. */
export function attemptKey(issue: IssueId, attempt: number): string {
  return `${issue} ${String(attempt)}`;
}

function fileOf({ id, dependsOn, touches, resources, maxAttempts }: Script['issues'][number]): string {
  const list = (key: string, values: readonly string[]): string[] =>
    values.length === 0 ? [] : [`${key}: [${values.map((value) => JSON.stringify(value)).join(', ')}]`];
  return [
    '---',
    'state: ready',
    ...list('depends-on', dependsOn),
    ...list('touches', touches),
    ...list('resources', resources),
    ...(maxAttempts === null ? [] : [`max-attempts: ${String(maxAttempts)}`]),
    '---',
    `# Issue ${id}`,
    '',
    'Do it.',
    '',
  ].join('\n');
}
