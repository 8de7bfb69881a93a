/**
 * A Spec of many Issues as a giro leaves it that was killed when nine of ten were integrated, one after the other: their
 * branches with three commits each, one merge commit each. Its objects are made here; a test compares it with a real run.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceHistory, spliceFrontmatter } from '../src/config/splice.js';
import { parseOid, shortOid, type GateNote, type Oid } from '../src/issue.js';
import { appendIntegration, closeAttempt, describeWork, openAttempt } from '../src/store/history-entries.js';
import { commitMessage, type Checkpoint } from '../src/store/trailers.js';
import { encodeCommit, encodeTree, treeMode } from '../src/worktree/objects.js';
import type { TreeEntry } from '../src/worktree/git-types.js';
import { manyIssues, type ManyIssuesProject } from './many-issues.js';
import { looseSink, packSink, type ObjectSink } from './object-sink.js';

/** The repository, and how many of its Issues are done. */
export interface HalfDone extends ManyIssuesProject {
  readonly done: number;
}

/** More of them would take gigabytes as loose objects; whoever has so many has let git pack them. */
const mostLoose = 2000;

const agent = `#!/bin/sh
folder="work/w\${GIRO_ISSUE%??-work}"
mkdir -p "$folder"
echo done > "$folder/$GIRO_ISSUE.txt"
`;

/** Makes it. */
export function halfDone(options: {
  readonly issues: number;
  readonly program: string;
  /** Absent: only when there are very many. */
  readonly packed?: boolean;
}): HalfDone {
  const project = manyIssues({ ...options, agent });
  const gitDir = join(project.repository, '.git');
  const sink = (options.packed ?? options.issues > mostLoose) ? packSink(gitDir) : looseSink(gitDir);
  const done = Math.floor(options.issues * 0.9);
  const refs = new Story(project.repository, sink).tell(done);
  sink.close();
  for (const [ref, oid] of refs) {
    const path = join(gitDir, ref);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, `${oid}\n`);
  }
  return { ...project, done };
}

/** A folder of a tree, entry by entry. */
type Folder = Map<string, TreeEntry>;

/** A time of its own for each commit. */
const start = Date.parse('2026-11-01T00:00:00Z');

const gate: GateNote = {
  gate: 'test',
  verdict: 'pass',
  note: 'exit 0 · 4 ms · definition 00fac5f5edd7d5a4 · log e3b0c44298fc1c14',
  findings: [],
};

/** Writes the commits, as giro would one after the other. */
class Story {
  readonly #sink: ObjectSink;
  readonly #repository: string;
  readonly #base: Oid;
  readonly #root: Folder;
  readonly #folders = new Map<string, Folder>();
  readonly #work = new Map<string, TreeEntry>();
  readonly #issues: IssuesFolder;
  readonly #spec: Oid;
  #seconds = 0;

  constructor(repository: string, sink: ObjectSink) {
    this.#repository = repository;
    this.#sink = sink;
    this.#base = parseOid(this.#git('rev-parse', 'HEAD'));
    this.#root = this.#listed('HEAD:');
    this.#issues = new IssuesFolder(this.#listed('HEAD:docs/specs/many/issues'), sink);
    const text = spliceFrontmatter(this.#git('show', 'HEAD:docs/specs/many/SPEC.md'), { state: 'active' });
    this.#spec = sink.put('blob', Buffer.from(`${text}\n`));
  }

  /** Gives the refs. */
  tell(done: number): ReadonlyMap<string, Oid> {
    const refs = new Map<string, Oid>();
    const asRead = this.#commit({
      tree: parseOid(this.#git('rev-parse', 'HEAD^{tree}')),
      parents: [this.#base],
      ...told('as-read', 'docs/specs/many as read from the checkout', { 'Giro-Base': this.#base }),
    });
    let tip = this.#commit({
      tree: this.#tree(),
      parents: [this.#base, asRead],
      ...told('snapshot', `many: snapshot of docs/specs/many on ${shortOid(this.#base)}`, {
        'Giro-Base-Branch': 'refs/heads/main',
        'Giro-Base': this.#base,
      }),
    });
    for (const [name, text] of this.#texts().slice(0, done)) {
      const branch = this.#attempt(name, text, tip);
      refs.set(`refs/heads/giro-issue/many/${name}`, branch.commit);
      tip = this.#land(name, { tip, ...branch, text });
    }
    return refs.set('refs/heads/giro/many', tip);
  }

  /** The three commits of an attempt that passed. */
  #attempt(name: string, text: string, tip: Oid): { readonly commit: Oid; readonly history: string } {
    const at = this.#now();
    const file = (history: string, phase: string): string =>
      spliceFrontmatter(replaceHistory(text, history), { state: 'in-progress', attempt: 1, phase });
    const commit = (checkpoint: Checkpoint, subject: string, step: { parent: Oid; text: string }): Oid => {
      this.#issues.set(name, step.text);
      const tree = this.#tree();
      const trailers = { 'Giro-Issue': name, 'Giro-Tree': tree };
      return this.#commit({ tree, parents: [step.parent], ...told(checkpoint, `${name}: ${subject}`, trailers) });
    };
    const opened = openAttempt('', { attempt: 1, at, driver: 'command', base: tip });
    const working = commit('working', 'attempt 1', { parent: tip, text: file(opened, 'working') });
    this.#writeWork(name);
    const usage = { costUsd: null, tokens: null };
    const line = { files: 1, insertions: 1, deletions: 0, duration: '9 ms', usage, subjects: [] };
    const described = describeWork(opened, line);
    const work = commit('judging', 'work of attempt 1', { parent: working, text: file(described, 'judging') });
    const code = this.#codeTree();
    const judged = { verdict: 'pass', work: { commit: work, tree: code }, gates: [gate], findings: [] } as const;
    const history = closeAttempt(described, judged);
    return {
      history,
      commit: commit('judged', 'attempt 1 pass', { parent: work, text: file(history, 'integrating') }),
    };
  }

  #land(name: string, of: { tip: Oid; commit: Oid; history: string; text: string }): Oid {
    const at = this.#now();
    const entry = { at, tip: of.tip, verdict: 'pass', gates: [gate], findings: [] } as const;
    const history = appendIntegration(of.history, entry);
    this.#issues.set(name, spliceFrontmatter(replaceHistory(of.text, history), { state: 'done' }));
    const message = commitMessage({
      checkpoint: 'integrated',
      subject: `${name}: Issue ${String(Number.parseInt(name, 10))}`,
      body: 'Integrated after 1 attempt.',
      trailers: {
        'Giro-Issue': name,
        'Giro-Code-Tree': this.#codeTree(),
        'Giro-Version': '0.1.0',
        'Giro-Base': this.#base,
      },
    });
    return this.#commit({ tree: this.#tree(), parents: [of.tip, of.commit], message });
  }

  #writeWork(name: string): void {
    const path = `w${name.replace(/..-work$/, '')}`;
    const folder = this.#folders.get(path) ?? new Map<string, TreeEntry>();
    const oid = this.#sink.put('blob', Buffer.from('done\n'));
    folder.set(`${name}.txt`, { name: `${name}.txt`, mode: '100644', oid });
    this.#folders.set(path, folder);
    this.#work.set(path, entry(path, this.#put([...folder.values()])));
  }

  #tree(): Oid {
    const specs = this.#put([
      { name: 'SPEC.md', mode: '100644', oid: this.#spec },
      { name: 'issues', mode: treeMode, oid: this.#issues.tree() },
    ]);
    const docs = this.#put([{ name: 'specs', mode: treeMode, oid: this.#put([entry('many', specs)]) }]);
    return this.#put([...this.#code(), entry('docs', docs)]);
  }

  #codeTree(): Oid {
    return this.#put(this.#code());
  }

  /** Everything but `docs/`, in which there is nothing else. */
  #code(): readonly TreeEntry[] {
    const rest = [...this.#root.values()].filter(({ name }) => name !== 'docs');
    return this.#work.size === 0 ? rest : [...rest, entry('work', this.#put([...this.#work.values()]))];
  }

  #put(entries: readonly TreeEntry[]): Oid {
    return this.#sink.put('tree', encodeTree(entries));
  }

  #commit(commit: { readonly tree: Oid; readonly parents: readonly Oid[]; readonly message: string }): Oid {
    this.#seconds += 1;
    return this.#sink.put('commit', encodeCommit({ ...commit, at: start + this.#seconds * 1000 }));
  }

  #now(): string {
    return new Date(start + this.#seconds * 1000).toISOString();
  }

  #texts(): readonly (readonly [string, string])[] {
    const folder = join(this.#repository, 'docs/specs/many/issues');
    return readdirSync(folder).map((name) => [name.replace(/\.md$/, ''), readFileSync(join(folder, name), 'utf8')]);
  }

  #listed(tree: string): Folder {
    return new Map(
      this.#git('ls-tree', tree)
        .split('\n')
        .map((line) => {
          const [head = '', name = ''] = line.split('\t');
          const [mode = '', , oid = ''] = head.split(' ');
          return [name, { name, mode, oid: parseOid(oid) }];
        }),
    );
  }

  #git(...args: string[]): string {
    return execFileSync('git', ['-C', this.#repository, ...args], { encoding: 'utf8' }).trimEnd();
  }
}

/** The folder of the Issues, in whose order they are done: each commit changes one name of an object in it. */
class IssuesFolder {
  readonly #sink: ObjectSink;
  readonly #data: Buffer;
  readonly #offsets = new Map<string, number>();
  /** Of all before what changes now, which is hashed once: such a folder is large. */
  readonly #digest = createHash('sha1');
  #digested = 0;
  #changed = new Set<number>();
  #base: Oid;
  #latest: Oid;

  constructor(folder: Folder, sink: ObjectSink) {
    this.#sink = sink;
    this.#data = encodeTree([...folder.values()]);
    let at = 0;
    for (const { name } of folder.values()) {
      at += `100644 ${name}\0`.length;
      this.#offsets.set(name.replace(/\.md$/, ''), at);
      at += 20;
    }
    this.#digest.update(`tree ${String(this.#data.length)}\0`);
    this.#base = this.#latest = sink.put('tree', Buffer.from(this.#data));
  }

  set(issue: string, text: string): void {
    const offset = this.#offsets.get(issue) ?? 0;
    this.#digest.update(this.#data.subarray(this.#digested, offset));
    this.#digested = offset;
    this.#data.write(this.#sink.put('blob', Buffer.from(text)), offset, 'hex');
    this.#changed.add(offset);
    this.#latest = parseOid(this.#digest.copy().update(this.#data.subarray(offset)).digest('hex'));
    this.#sink.putLike(this.#latest, this.#data, { base: this.#base, offsets: [...this.#changed] });
    if (this.#changed.size < 50 || !text.includes('state: done')) return;
    // Whole again from time to time, so that what differs from it stays small.
    this.#base = this.#sink.put('tree', Buffer.from(this.#data));
    this.#changed = new Set();
  }

  tree(): Oid {
    return this.#latest;
  }
}

function entry(name: string, oid: Oid): TreeEntry {
  return { name, mode: treeMode, oid };
}

function told(
  checkpoint: Checkpoint,
  subject: string,
  trailers: Readonly<Record<string, string>>,
): { readonly message: string } {
  return { message: commitMessage({ checkpoint, subject, trailers }) };
}
