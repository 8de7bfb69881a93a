/**
 * Takes up what people answer while a run goes on (`giro answer`): seen on `giro/<spec>`, where every answer lands.
 *
 * An Issue counts as answered when its file there tells of more answers than the run knew when it came to rest; that its
 * state is `ready` alone may only mean that its packet could not be shown there.
 */
import type { Issue, IssueId, IssueState, Oid } from '../issue.js';
import { answersOf } from '../store/findings.js';
import { closings, readHistory } from '../store/history.js';
import type { Journal } from '../store/journal.js';
import { readBranches } from '../store/facts.js';
import { readSpecAt } from '../store/read.js';
import type { Lane } from '../worktree/lane.js';
import { journalOf, type OpenedSpec, type OpeningPorts } from './opening.js';

/** How long an answer may lie there before it is seen. */
const lookEveryMs = 2000;

/** What taking up answers stands on. */
export interface PickupPorts {
  readonly opening: OpeningPorts;
  readonly opened: OpenedSpec;
  readonly lane: Lane;
  readonly states: Map<IssueId, IssueState>;
  /** Only this Issue is run; `null`: all of them. */
  readonly only: IssueId | null;
}

/** The answers of one run. */
export class Pickup {
  readonly #ports: PickupPorts;
  /** How many answers and landings each Issue had when it came to rest. */
  readonly #known: Map<IssueId, number>;
  /** The tip that was looked at last. */
  #seen: Oid | null = null;

  constructor(ports: PickupPorts) {
    this.#ports = ports;
    const asking = ports.opened.issues.filter(({ state }) => state === 'needs-human');
    this.#known = new Map(asking.map(({ id, history }) => [id, closings(readHistory(history))]));
  }

  /** Notes that an Issue came to rest, needing a human. */
  rests(journal: Journal): void {
    this.#known.set(journal.id, closings(journal.entries));
  }

  /** Says whether a person answered what was not taken up yet. */
  async hasAnswers(tip: Oid): Promise<boolean> {
    return (await this.#answered(tip)).length > 0;
  }

  /** Takes up what was answered since: the records of the Issues that can run again. */
  async take(): Promise<ReadonlyMap<IssueId, Journal>> {
    const { opening, opened, lane, states } = this.#ports;
    const { emit, git, prepared } = opening;
    const tip = await lane.refresh();
    const journals = new Map<IssueId, Journal>();
    if (tip === this.#seen) return journals;
    this.#seen = tip;
    const answered = await this.#answered(tip);
    if (answered.length === 0) return journals;
    const now = { ...opening, prepared: { ...prepared, branches: await readBranches(git, prepared.spec) } };
    for (const issue of answered) {
      const entries = readHistory(issue.history);
      const state = issue.state === 'wontfix' ? 'wontfix' : 'ready';
      this.#known.set(issue.id, closings(entries));
      if (state === 'ready') journals.set(issue.id, await journalOf(now, { ...opened, fresh: false }, { issue, tip }));
      states.set(issue.id, state);
      emit({ type: 'issue.answered', issue: issue.id, state, how: answersOf(entries).at(-1)?.how ?? 'answered' });
    }
    return journals;
  }

  /** Looks for answers until `done`, and hands on what can run again. */
  async watch(found: (journals: ReadonlyMap<IssueId, Journal>) => void, done: AbortSignal): Promise<void> {
    const { opening, states } = this.#ports;
    for (;;) {
      await opening.clock.sleep(lookEveryMs, done);
      if (done.aborted) return;
      if ([...states.values()].includes('needs-human')) found(await this.take());
    }
  }

  async #answered(tip: Oid): Promise<readonly Issue[]> {
    const { opening, states, only } = this.#ports;
    if (![...states.values()].includes('needs-human')) return [];
    const parsed = await readSpecAt(opening.git, tip, opening.prepared.spec);
    if (!parsed.ok) return [];
    return parsed.value.spec.issues.filter((issue) => {
      if (states.get(issue.id) !== 'needs-human' || (only !== null && issue.id !== only)) return false;
      if (issue.state !== 'ready' && issue.state !== 'wontfix') return false;
      return closings(readHistory(issue.history)) > (this.#known.get(issue.id) ?? 0);
    });
  }
}
