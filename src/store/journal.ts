/**
 * The record of one Issue on its own branch: every checkpoint is one commit there, written by the engine alone and
 * moved by compare-and-swap from the value it wrote last (DESIGN 4).
 *
 * J1 An attempt is on the branch before anything is started for it (L5).
 * J2 `docs/specs/` of every commit is the integration branch's, with this Issue's own file replaced from this record.
 * J3 User-owned parts of the file come from `giro/<spec>`; `state`, `attempt`, `phase` and History come from here.
 * J4 Nothing is rewritten: a commit's first parent is the branch's last value.
 * J5 Once the branch turns out to be moved by somebody else, it is not written again; what was recorded goes on in
 *    commits that no branch has, to be saved.
 */
import { replaceHistory, spliceFrontmatter } from '../config/splice.js';
import {
  type AttemptVerdict,
  type Finding,
  type GateNote,
  type Issue,
  type IssueId,
  type IssueState,
  type Oid,
  type Waived,
  type WorkNote,
  shortOid,
} from '../issue.js';
import type { EscalationCause } from '../event.js';
import type { FileChange } from '../worktree/git-types.js';
import type { Story } from '../record.js';
import { storyOf } from './findings.js';
import {
  blockedInARow,
  budgetUsed,
  couldNotBeJudged,
  lastAttempt,
  lastFindings,
  lastQuestion,
  noProgress,
  openFindings,
  readHistory,
  wasTakenBack,
  type HistoryEntry,
} from './history.js';
import { appendEscalation, appendIntegration, closeAttempt, describeWork, openAttempt } from './history-entries.js';
import { markedConflict, overruledIn, type Conflict } from './overruled.js';
import { readIssueText } from './read.js';
import { codeTree, joinTree, specsTree } from './tree.js';
import { IssueBranch, type Step, type BranchPorts, type BranchStart } from './issue-branch.js';

/** Where an Issue stands when a run takes it up. */
export type Standing =
  | 'fresh'
  /** Recorded, never finished: the attempt counts. */
  | 'interrupted'
  /** Judged red, or stopped in order: the next attempt is due. */
  | 'between'
  /** Its work is committed: gates only. */
  | 'judging'
  /** Judged green: the lane is next. */
  | 'integrating'
  /** A person committed on the branch: their work is judged without an agent. */
  | 'by-hand'
  | 'needs-human';

/** A merge of the integration tip that waits to become part of the branch. */
type Onto =
  | { readonly kind: 'clean'; readonly tip: Oid; readonly code: Oid }
  | { readonly kind: 'conflict'; readonly tip: Oid; readonly code: Oid; readonly files: readonly string[] };

/** The record of one Issue. */
export class Journal {
  readonly id: IssueId;
  readonly #ports: BranchPorts;
  readonly #issue: Issue;
  readonly #branch: IssueBranch;
  #text: string;
  #history: string;
  #base: Oid;
  #onto: Onto | null = null;
  #standing: Standing;
  #workFindings: readonly Finding[];

  constructor(ports: BranchPorts, start: JournalStart) {
    this.#ports = ports;
    this.id = start.issue.id;
    this.#branch = new IssueBranch(ports, start);
    this.#issue = start.issue;
    this.#text = start.text;
    this.#history = start.history;
    this.#base = start.base;
    this.#standing = start.standing;
    this.#workFindings = openFindings(readHistory(start.history));
  }

  /** The Issue as its file on the integration branch says. */
  get issue(): Issue {
    return this.#issue;
  }

  /** The full name of the Issue's branch. */
  get ref(): string {
    return this.#branch.ref;
  }

  /** The tip of the Issue's branch; `null` before its first attempt. */
  get commit(): Oid | null {
    return this.#branch.commit;
  }

  /** The newest tip of the integration branch that the branch contains: the base of its diff. */
  get base(): Oid {
    return this.#base;
  }

  get standing(): Standing {
    return this.#standing;
  }

  get history(): string {
    return this.#history;
  }

  get entries(): readonly HistoryEntry[] {
    return readHistory(this.#history);
  }

  /** Number of the newest attempt. */
  get attempt(): number {
    return lastAttempt(this.entries);
  }

  /** Attempts used since a person answered last. */
  get budgetUsed(): number {
    return budgetUsed(this.entries);
  }

  get blockedInARow(): number {
    return blockedInARow(this.entries);
  }

  /** What the worker of the newest attempt asks, when it said `blocked`. */
  get question(): string | undefined {
    return lastQuestion(this.entries);
  }

  /** True: the gates of the newest attempt could not run at all, and nobody answered since. */
  get couldNotBeJudged(): boolean {
    return couldNotBeJudged(this.entries);
  }

  /** What the engine found on the work that is to be judged. */
  get workFindings(): readonly Finding[] {
    return this.#workFindings;
  }

  /** True: a person answered, and no attempt was made since. */
  get answered(): boolean {
    return this.entries.at(-1)?.kind === 'answered';
  }

  /** What History tells of findings, attempts and answers. */
  get story(): Story {
    return storyOf(this.entries);
  }

  /** True: the folder of the newest attempt was taken back, so that what differs there now is not an agent's. */
  get takenBack(): boolean {
    return wasTakenBack(this.entries);
  }

  /** Why the branch is not the engine's to write any more; `null` while it is. */
  get lost(): string | null {
    return this.#branch.lost;
  }

  /** Why going on would pay again for the same result; `undefined` when it would not. */
  noProgress(limit: number): string | undefined {
    return noProgress(this.entries, limit);
  }

  /** What the next attempt must hear. */
  get findings(): string {
    return lastFindings(this.#history);
  }

  /** Files that the worker must resolve; empty when nothing conflicts. */
  get conflicts(): readonly string[] {
    return this.#onto?.kind === 'conflict' ? this.#onto.files : [];
  }

  /** Brings the branch onto a newer tip of the integration branch: at once when clean, else as files to resolve. */
  async bringOnto(tip: Oid): Promise<void> {
    if (tip === this.#base && this.#onto === null) return;
    const { git } = this.#ports;
    this.#text = (await readIssueText(git, tip, this.#issue.path)) ?? this.#text;
    if (this.#branch.commit === null) {
      this.#base = tip;
      return;
    }
    const mine = await this.#standIn();
    const merged = await git.mergeTrees(mine, tip);
    const code = await codeTree(git, merged.tree);
    this.#onto =
      merged.kind === 'clean'
        ? { kind: 'clean', tip, code }
        : { kind: 'conflict', tip, code, files: merged.files.filter((file) => !file.startsWith('docs/specs/')) };
    if (this.#onto.kind === 'conflict' && this.#onto.files.length === 0) this.#onto = { kind: 'clean', tip, code };
  }

  /** Records the next attempt (J1); gives the commit to work on and the files to show. */
  async recordAttempt(
    driver: string,
  ): Promise<{ readonly attempt: number; readonly commit: Oid; readonly files: Oid; readonly base: Oid }> {
    const { git, clock } = this.#ports;
    const attempt = this.attempt + 1;
    const onto = this.#onto;
    const base = onto?.tip ?? this.#base;
    this.#history = openAttempt(this.#history, { attempt, at: clock.iso(), driver, base });
    this.#workFindings = [];
    const parents =
      this.#branch.commit === null
        ? [base]
        : onto?.kind === 'clean'
          ? [this.#branch.commit, onto.tip]
          : [this.#branch.commit];
    const code = onto?.kind === 'clean' ? onto.code : await this.#branch.codeOf(this.#branch.commit ?? base);
    if (onto?.kind === 'clean') {
      this.#base = onto.tip;
      this.#onto = null;
    }
    const commit = await this.#record({
      checkpoint: 'working',
      subject: `${this.id}: attempt ${String(attempt)}`,
      parents,
      code,
      specsFrom: base,
      state: { attempt, phase: 'working' },
    });
    this.#standing = 'interrupted';
    const files =
      onto?.kind === 'conflict'
        ? await joinTree(git, onto.code, await specsTree(git, commit))
        : (await git.readCommit(commit)).tree;
    return { attempt, commit, files, base };
  }

  /**
   * Gives the code of the branch, the code that a worker is shown (that, or a merge to resolve), the code that the diff
   * starts from, and the whole tree of the branch.
   */
  async trees(): Promise<{ readonly code: Oid; readonly shown: Oid; readonly baseCode: Oid; readonly files: Oid }> {
    const base = this.#onto?.tip ?? this.#base;
    const { tree: files } = await this.#ports.git.readCommit(this.#branch.commit ?? base);
    const code = await codeTree(this.#ports.git, files);
    return { code, shown: this.#onto?.code ?? code, baseCode: await this.#branch.codeOf(base), files };
  }

  /** What the work changes against its base, file by file. */
  async changes(): Promise<readonly FileChange[]> {
    if (this.#branch.commit === null) return [];
    return this.#ports.git.diffTrees(
      await this.#branch.codeOf(this.#base),
      await this.#branch.codeOf(this.#branch.commit),
    );
  }

  /**
   * Names the conflicting files in which `code` has the branch's own version whole, and with it none of what landed there:
   * the conflict is not resolved, it is overruled.
   */
  async overruled(code: Oid): Promise<readonly string[]> {
    const { git } = this.#ports;
    const conflict = await this.#conflict();
    return conflict === null ? [] : overruledIn(git, conflict, code);
  }

  /** What is to be resolved: shown now, or left with its marks by an earlier attempt. */
  async #conflict(): Promise<Conflict | null> {
    const onto = this.#onto;
    if (onto?.kind !== 'conflict') return markedConflict(this.#ports.git, this.#branch.required());
    return {
      own: await this.#branch.codeOf(this.#branch.required()),
      landed: await this.#branch.codeOf(onto.tip),
      files: onto.files,
    };
  }

  /**
   * Commits what the worker left, with what the engine found on it. `gated`: gates come next. `overrules`: it is no merge
   * with what landed, and its conflicts are still to be resolved.
   */
  async commitWork(work: {
    readonly code: Oid;
    readonly line: WorkNote;
    readonly gated: boolean;
    readonly findings: readonly Finding[];
    readonly overrules?: boolean;
  }): Promise<Oid> {
    const onto = work.overrules === true ? null : this.#onto;
    const phase = work.gated ? 'judging' : 'working';
    this.#history = describeWork(this.#history, work.line, work.findings);
    this.#workFindings = work.findings;
    const commit = await this.#record({
      checkpoint: phase,
      subject: `${this.id}: work of attempt ${String(this.attempt)}`,
      parents: [this.#branch.required(), ...(onto === null ? [] : [onto.tip])],
      code: work.code,
      specsFrom: onto?.tip ?? this.#base,
      state: { attempt: this.attempt, phase },
    });
    if (onto !== null) this.#base = onto.tip;
    this.#onto = null;
    this.#standing = work.gated ? 'judging' : 'interrupted';
    return commit;
  }

  /**
   * Takes a person's work as an attempt of its own: their commits on the branch, or `code` from their folder; or the newest
   * work, to be judged again.
   */
  async adoptWork(work: {
    readonly code: Oid | null;
    readonly by: string;
    /** The newer commit of the integration branch that `code` is a merge with. */
    readonly onto?: Oid;
    readonly line: WorkNote;
    readonly findings: readonly Finding[];
  }): Promise<void> {
    const { onto } = work;
    if (onto !== undefined) {
      this.#text = (await readIssueText(this.#ports.git, onto, this.#issue.path)) ?? this.#text;
      this.#base = onto;
    }
    const at = this.#ports.clock.iso();
    const attempt = this.attempt + 1;
    const parent = this.#branch.required();
    const opened = openAttempt(this.#history, { attempt, at, driver: work.by, base: this.#base });
    this.#history = describeWork(opened, work.line, work.findings);
    this.#workFindings = work.findings;
    this.#onto = null;
    await this.#record({
      checkpoint: 'judging',
      subject: `${this.id}: ${work.by === 'by hand' ? 'work by hand' : work.by}`,
      parents: [parent, ...(onto === undefined ? [] : [onto])],
      code: work.code ?? (await this.#branch.codeOf(parent)),
      specsFrom: this.#base,
      state: { attempt, phase: 'judging' },
    });
    this.#standing = 'judging';
  }

  /** Closes the open entry. A pass hands the Issue to the lane. */
  async recordVerdict(verdict: {
    readonly verdict: AttemptVerdict;
    readonly code?: Oid;
    /** What the worker left, when no `commitWork` told it. */
    readonly line?: WorkNote;
    readonly gates: readonly GateNote[];
    readonly findings: readonly Finding[];
    readonly waived?: readonly Waived[];
  }): Promise<void> {
    const { code, line } = verdict;
    this.#workFindings = [];
    const told = line === undefined ? this.#history : describeWork(this.#history, line);
    this.#history = closeAttempt(told, {
      verdict: verdict.verdict,
      ...(code === undefined ? {} : { work: { commit: this.#branch.required(), tree: code } }),
      gates: verdict.gates,
      findings: verdict.findings,
      ...(verdict.waived === undefined ? {} : { waived: verdict.waived }),
    });
    const passed = verdict.verdict === 'pass';
    await this.#docs({
      checkpoint: 'judged',
      subject: `${this.id}: attempt ${String(this.attempt)} ${verdict.verdict}`,
      state: { attempt: this.attempt, phase: passed ? 'integrating' : 'working' },
    });
    this.#standing = passed ? 'integrating' : 'between';
  }

  /** Records that the lane sent it back. */
  async recordRejection(entry: {
    readonly tip: Oid;
    readonly gates: readonly GateNote[];
    readonly findings: readonly Finding[];
  }): Promise<void> {
    const { tip, gates, findings } = entry;
    const at = this.#ports.clock.iso();
    this.#history = appendIntegration(this.#history, { at, verdict: 'fail', tip, gates, findings });
    await this.#docs({
      checkpoint: 'judged',
      subject: `${this.id}: not integrated onto ${shortOid(entry.tip)}`,
      state: { attempt: this.attempt, phase: 'working' },
    });
    this.#standing = 'between';
  }

  /** Writes the packet on the branch; the integration branch's copy is the caller's next step. */
  async escalate(entry: { readonly cause: EscalationCause; readonly packet: readonly string[] }): Promise<void> {
    this.#history = appendEscalation(this.#history, { at: this.#ports.clock.iso(), ...entry });
    await this.#docs({
      checkpoint: 'escalated',
      subject: `${this.id}: needs a human (${entry.cause})`,
      state: null,
      issueState: 'needs-human',
    });
    this.#standing = 'needs-human';
  }

  /** Gives the Issue's file as the integration branch should hold it at `tip`. */
  async fileAt(tip: Oid, state: IssueState, appended?: (history: string) => string): Promise<string> {
    const text = (await readIssueText(this.#ports.git, tip, this.#issue.path)) ?? this.#text;
    const history = appended === undefined ? this.#history : appended(this.#history);
    return spliceFrontmatter(replaceHistory(text, history), { state, attempt: null, phase: null });
  }

  /** Gives the commit whose code the lane merges, with `docs/specs/` of its base so that only code can conflict. */
  async standIn(): Promise<{ readonly commit: Oid; readonly base: Oid; readonly code: Oid }> {
    return {
      commit: await this.#standIn(),
      base: this.#base,
      code: await this.#branch.codeOf(this.#branch.required()),
    };
  }

  async #standIn(): Promise<Oid> {
    const { git } = this.#ports;
    const tree = await joinTree(
      git,
      await this.#branch.codeOf(this.#branch.required()),
      await this.#branch.specsOf(this.#base),
    );
    return git.writeCommit({ tree, parents: [this.#base], message: 'stand-in\n', at: 0 });
  }

  async #docs(change: Omit<Step, 'parents' | 'code' | 'specsFrom'>): Promise<void> {
    const parent = this.#branch.commit ?? this.#base;
    await this.#record({
      ...change,
      parents: [parent],
      code: await this.#branch.codeOf(parent),
      specsFrom: this.#base,
    });
  }

  async #record(step: Step): Promise<Oid> {
    const file = spliceFrontmatter(replaceHistory(this.#text, this.#history), {
      state: step.issueState ?? 'in-progress',
      attempt: step.state?.attempt ?? null,
      phase: step.state?.phase ?? null,
    });
    return this.#branch.advance(step, { path: this.#issue.path, text: file });
  }
}

/** What a journal starts from. */
export interface JournalStart extends BranchStart {
  readonly issue: Issue;
  readonly text: string;
  readonly history: string;
  readonly base: Oid;
  readonly standing: Standing;
}
