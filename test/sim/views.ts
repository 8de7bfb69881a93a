/** What a person is shown while a simulated run goes on: every Issue in one state, with a reason when it waits or asks. */
import type { EventBody } from '../../src/event.js';
import type { IssueId } from '../../src/issue.js';
import { claimOf, type Claim } from '../../src/scheduler/overlap.js';
import { waitingFor } from '../../src/scheduler/plan.js';
import { emptyState, issueStatus, reduce, type IssueView, type RunState } from '../../src/state.js';
import type { Life } from './process.js';
import type { World } from './world.js';

/** Issues beyond which only some events are looked at. */
const fewIssues = 12;

/** Folds the events of one life with the one reducer. */
export class Views {
  readonly #world: World;
  readonly #life: Life;
  readonly #claims: ReadonlyMap<IssueId, Claim>;
  #state: RunState = emptyState;

  constructor(world: World, life: Life) {
    this.#world = world;
    this.#life = life;
    this.#claims = new Map(world.script.issues.map((issue) => [issue.id, claimOf(issue)]));
  }

  get state(): RunState {
    return this.#state;
  }

  take(body: EventBody): void {
    const at = this.#life.clock.iso();
    this.#state = reduce(this.#state, { ...body, v: 1, at, run: String(this.#world.run) });
    const { issues } = this.#state;
    const isRest = body.type === 'issue.integrated' || body.type === 'issue.escalated';
    if (!isRest && (issues.size > fewIssues || !changesIssues(body))) return;
    for (const [id, view] of issues) this.#look(id, view);
  }

  #look(id: IssueId, view: IssueView): void {
    const { issues } = this.#state;
    const status = issueStatus(issues, id);
    const tip = this.#world.store.readRef(this.#world.tipRef);
    const durable = tip === null ? null : this.#world.factsAt(tip, id)?.state;
    if (status.kind === 'done' && durable !== 'done') this.#fail(`${id} is shown as done and is ${String(durable)}`);
    if (status.kind === 'needs-human' && status.question.trim() === '') this.#fail(`${id} asks nothing`);
    if (view.progress.kind !== 'idle') return;
    const reason = waitingFor(id, issues, this.#claims);
    if (reason === null) this.#fail(`${id} waits without a reason`);
    const open = view.dependsOn.filter((on) => issues.get(on)?.progress.kind !== 'done');
    if ((reason?.kind === 'dependency') !== open.length > 0)
      this.#fail(`${id} waits for ${String(reason?.kind)}, and ${open.join(', ') || 'nothing'} is open`);
    if (reason?.kind !== 'dependency' || !reason.needsHuman) return;
    if (issues.get(reason.on)?.progress.kind !== 'needs-human')
      this.#fail(`${id} waits for ${reason.on}, which asks nobody`);
  }

  #fail(message: string): void {
    this.#life.fail(`${message} (views)`);
  }
}

/** What a gate or a notice tells changes nothing about who waits for whom. */
function changesIssues({ type }: EventBody): boolean {
  return !type.startsWith('gate.') && !type.startsWith('budget.') && !type.startsWith('run.notice');
}
