/**
 * What must hold after every step of a simulated run, told from the durable world and from what really happened, never from
 * what the engine thinks of it.
 *
 * O1 The tip is the base, or code that passed the gates; it moves by one commit on top of the one before.
 * O2 No Issue is worked on, or lands, before all that it depends on has landed; what landed stays in every later tip.
 * O3 An attempt is on its branch before its agent starts, and no attempt is started twice.
 * O4 No more agents and gates at once than allowed; no two Issues at once that share a lease.
 * O5 Attempts that use the budget are never more than it allows, whatever crashes.
 * O6 Work whose result is recorded is judged, and integrated when it passed, before anybody works on the Issue again.
 * O7 History only grows; only an agent that could not work, or a stop, gives an attempt back.
 * O8 An Issue asks for a reason that really is one.
 */
import type { IssueId, Oid } from '../../src/issue.js';
import { claimOf, sharedBy } from '../../src/scheduler/overlap.js';
import { issueIn, lost, ownFile, wrongs } from './code.js';
import type { Life } from './process.js';
import { counted, sinceAnswered, type Entry, type FileFacts } from './record.js';
import { attemptKey, type World } from './world.js';

/** Watches one life of giro. */
export class Oracle {
  readonly #world: World;
  readonly #life: Life;
  readonly #agents = new Set<string>();
  readonly #active = new Set<IssueId>();
  #gates = 0;
  /** No agent starts before this moment, since this one was told. */
  #limit: { readonly told: number; readonly until: number } | null = null;

  constructor(world: World, life: Life) {
    this.#world = world;
    this.#life = life;
  }

  /** A ref has moved. */
  moved(ref: string, to: Oid | null, from: Oid | null): void {
    const issue = this.#world.issueOf(ref);
    if (to === null) this.#fail(`${ref} was deleted`);
    else if (ref === this.#world.tipRef) this.#tipMoved(to, from);
    else if (issue !== null) this.#branchMoved(issue, to, from);
  }

  /** An agent starts. */
  agentStarts(issue: IssueId, attempt: number): void {
    const { store, script, starts } = this.#world;
    const key = attemptKey(issue, attempt);
    if (starts.has(key)) this.#fail(`attempt ${key} is started twice (O3)`);
    const branch = store.readRef(this.#world.branchOf(issue));
    const facts = branch === null ? null : this.#world.factsAt(branch, issue);
    const newest = facts?.entries.findLast((entry) => entry.attempt !== null);
    if (newest?.attempt !== attempt || newest.verdict !== null || facts?.phase !== 'working')
      this.#fail(`attempt ${key} is not recorded and its agent starts (O3)`);
    const tip = store.readRef(this.#world.tipRef);
    for (const on of issueIn(script, issue).dependsOn) {
      const state = tip === null ? null : this.#world.factsAt(tip, on)?.state;
      if (state !== 'done') this.#fail(`${key} starts while ${on} is ${String(state)} (O2)`);
      const isThere = this.#world.folders.get(issue)?.files.has(ownFile(on)) === true;
      if (!isThere) this.#fail(`${key} does not see the work of ${on} (O2)`);
    }
    if (tip !== null && this.#world.factsAt(tip, issue)?.state === 'done') this.#fail(`${key} is done and starts`);
    this.#leases(issue, key);
    this.#enters(key);
  }

  /** An agent that belongs to no Issue starts. */
  plannerStarts(plan: number): void {
    this.#enters(`plan ${String(plan)}`);
  }

  agentEnds(key: string): void {
    this.#agents.delete(key);
  }

  /** A usage limit was told: nobody is to start before its end. */
  limited(until: number): void {
    const told = this.#life.clock.now();
    this.#limit = { told: this.#limit?.told ?? told, until: Math.max(until, this.#limit?.until ?? 0) };
  }

  gateStarts(): void {
    this.#gates += 1;
    if (this.#gates > this.#world.script.gates) this.#fail(`${String(this.#gates)} gates at once (O4)`);
  }

  gateEnds(): void {
    this.#gates -= 1;
  }

  /** An Issue came to rest in this life. */
  rests(issue: IssueId): void {
    this.#active.delete(issue);
  }

  #enters(key: string): void {
    this.#agents.add(key);
    const { agents } = this.#world.script;
    if (this.#agents.size > agents) this.#fail(`${[...this.#agents].join(', ')}: more than ${String(agents)} (O4)`);
    const now = this.#life.clock.now();
    if (this.#life.noMore.signal.aborted && now > (this.#stoppedAt ?? now) + slackMs)
      this.#fail(`${key} starts after the stop`);
    const limit = this.#limit;
    if (limit === null) return;
    if (now >= limit.until) this.#limit = null;
    // Who was on the way already could not know.
    else if (now > limit.told + slackMs) this.#fail(`${key} starts while the account is used up`);
  }

  get #stoppedAt(): number | null {
    return this.#life.stoppedAt;
  }

  #leases(issue: IssueId, key: string): void {
    const { script } = this.#world;
    const claim = claimOf(issueIn(script, issue));
    for (const other of this.#active) {
      if (other === issue) continue;
      const shared = sharedBy(claimOf(issueIn(script, other)), claim);
      if (shared !== undefined) this.#fail(`${key} starts while ${other} holds ${shared} (O4)`);
    }
    this.#active.add(issue);
  }

  #tipMoved(to: Oid, from: Oid | null): void {
    const { store, proven, script } = this.#world;
    const code = this.#world.code(to);
    const before = this.#world.code(from ?? this.#world.head);
    if (store.commit(to).parents[0] !== (from ?? this.#world.head))
      this.#fail('the tip does not stand on the one before (O1)');
    if (code !== before && !proven.has(code)) this.#fail(`the tip moved to code that no gate passed (O1)`);
    const files = this.#world.filesOf(code);
    const [wrong] = wrongs(script, files);
    if (wrong !== undefined) this.#fail(`the tip is red: ${wrong} (O1)`);
    for (const issue of this.#world.issuesAt(to)) {
      const was = from === null ? 'ready' : this.#world.factsAt(from, issue)?.state;
      const state = this.#world.factsAt(to, issue)?.state;
      if (was === 'done' && state !== 'done') this.#fail(`${issue} was done and is ${String(state)} (O2)`);
      if (state !== 'done') continue;
      const [gone] = lost(script, files, issue);
      if (gone !== undefined) this.#fail(`what ${issue} left in ${gone} is lost (O2)`);
      if (was === 'done') continue;
      for (const on of issueIn(script, issue).dependsOn)
        if (from === null || this.#world.factsAt(from, on)?.state !== 'done')
          this.#fail(`${issue} lands before ${on} (O2)`);
    }
  }

  #branchMoved(issue: IssueId, to: Oid, from: Oid | null): void {
    const before = from === null ? null : this.#world.factsAt(from, issue);
    const now = this.#world.factsAt(to, issue);
    if (now === null) {
      this.#fail(`${issue} has no file on its branch`);
      return;
    }
    this.#grows(issue, before, now);
    const attempts = now.entries.filter((entry) => entry.attempt !== null);
    if (attempts.some((entry, index) => entry.attempt !== index + 1))
      this.#fail(`attempts of ${issue} are not counted on (O7)`);
    const opened = attempts.length > (before?.entries.filter((entry) => entry.attempt !== null).length ?? 0);
    const newest = attempts.at(-1);
    if (opened && newest !== undefined) this.#opened(issue, newest, { before, now });
    if (newest !== undefined) this.#closed(issue, newest, before);
    if (now.state === 'needs-human' && before?.state !== 'needs-human') this.#asks(issue, now.entries);
  }

  #grows(issue: IssueId, before: FileFacts | null, now: FileFacts): void {
    for (const [index, entry] of (before?.entries ?? []).entries())
      if (now.entries[index]?.heading !== entry.heading) this.#fail(`${issue} lost ${entry.heading} (O7)`);
  }

  #opened(issue: IssueId, newest: Entry, { before, now }: { before: FileFacts | null; now: FileFacts }): void {
    const isByHand = newest.by === 'by hand';
    if (isByHand && !this.#world.touched.has(issue))
      this.#fail(`${issue}: what no person did is taken for theirs (O6)`);
    const isAnswered = now.entries.length > (before?.entries.length ?? 0) + 1;
    const isRecorded = before?.phase === 'judging' || before?.phase === 'integrating';
    if (isRecorded && !isByHand && !isAnswered) this.#fail(`${issue} is ${before.phase}, and worked on again (O6)`);
    const isAgents = !isByHand && newest.by !== 'judged again';
    const used = counted(now.entries).length;
    if (isAgents && used > this.#allowed(issue)) this.#fail(`${issue} used ${String(used)} attempts (O5)`);
  }

  #closed(issue: IssueId, { attempt, verdict, by, text }: Entry, before: FileFacts | null): void {
    const key = attemptKey(issue, attempt ?? 0);
    if (before?.phase === 'judging' && verdict === 'fail' && !text.includes('\n- gate '))
      this.#fail(`${key} was to be judged, and is red without a gate (O6)`);
    if (verdict === 'stopped' && !this.#life.noMore.signal.aborted)
      this.#fail(`${key} counts as stopped, and nobody did (O7)`);
    if (verdict !== 'operation' || by === 'by hand' || by === 'judged again') return;
    const play = this.#world.starts.get(key)?.play;
    const isExplained = play === 'operation' || play === 'limit' || this.#world.broken.has(key);
    if (!isExplained) this.#fail(`${key} is given back, and was ${play ?? 'never started'} (O7)`);
  }

  #allowed(issue: IssueId): number {
    const { script } = this.#world;
    const { attempts } = script.budget;
    return Math.min(attempts, issueIn(script, issue).maxAttempts ?? attempts);
  }

  #asks(issue: IssueId, all: readonly Entry[]): void {
    const entries = sinceAnswered(all);
    const packet = entries.findLast((entry) => entry.heading.startsWith('### Escalated'));
    const cause = /^### Escalated · \S+ · (\S+)/.exec(packet?.heading ?? '')?.[1] ?? '';
    if (packet === undefined || !/^question: \S/m.test(packet.text)) this.#fail(`${issue} asks nothing (O8)`);
    if (!this.#isReason(issue, entries, cause)) this.#fail(`${issue} asks without a reason: ${cause} (O8)`);
  }

  #isReason(issue: IssueId, entries: readonly Entry[], cause: string): boolean {
    const { budget } = this.#world.script;
    const attempts = entries.filter((entry) => entry.attempt !== null);
    const keys = attempts.map((entry) => attemptKey(issue, entry.attempt ?? 0));
    const plays = keys.map((key) => this.#world.starts.get(key)?.play);
    switch (cause) {
      case 'budget-spent':
        return counted(entries).length >= this.#allowed(issue);
      case 'no-progress':
        return attempts.filter(({ verdict }) => verdict === 'fail' || verdict === 'pass').length >= 2;
      case 'blocked':
        return plays.filter((play) => play === 'blocked' || play === 'blocked-good').length >= budget.blocked;
      case 'operation-failures':
        return attempts.filter(({ verdict }) => verdict === 'operation').length >= budget.failures;
      case 'cannot-run-here':
        return keys.some((key) => this.#world.broken.has(key));
      default:
        return false;
    }
  }

  #fail(message: string): void {
    this.#life.fail(message);
  }
}

/** How long it may take from the decision to start an agent until it starts. */
const slackMs = 2000;
