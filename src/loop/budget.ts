/**
 * The budgets of a run: asked before each call of a model, told after it (DESIGN 5).
 *
 * B1 No call is made without a ticket, and a ticket counts at what the call may cost until it is given back.
 * B2 What is unknown counts as it was reserved, never as nothing, unless giro.toml allows it.
 * B3 What an earlier run spent comes from History; a person's answer begins the budget of what was escalated anew.
 * B4 A refusal is final: what waits for others to end is not refused.
 */
import type { IssueId } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { formatLimit } from '../platform/duration.js';
import type { Allowance, Budget } from '../policy.js';
import type { Ledger, Spell } from '../record.js';
import {
  addUsage,
  noSpending,
  type BudgetStanding,
  type Charge,
  type SpentFacts,
  type Spending,
  type Usage,
} from '../usage.js';
import {
  counted,
  decide,
  largerOf,
  standingsOf,
  LargestCalls,
  minus,
  nothing,
  plus,
  type Account,
  type Amount,
  type Refusal,
} from './budget-account.js';

/** A call that is to be made. */
export interface Call extends Pick<Charge, 'role' | 'driver'> {
  /** `null`: for the Spec as a whole. */
  readonly issue: IssueId | null;
}

/** Permission for one call. */
export interface Ticket {
  /** How long the call may take at most, for the budgets of time; `null`: as long as it likes. */
  readonly timeLeftMs: number | null;
  /** Gives it back; only the first time counts. `null`: no model was called after all. */
  close(spent: { readonly usage: Usage; readonly durationMs: number } | null): void;
}

/** What came of asking. */
export type Asked =
  | { readonly kind: 'open'; readonly ticket: Ticket }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'stopped' };

/** What the loops ask of the budgets of a Spec. */
export interface Budgeting {
  /** Asks for a call; waits while only what runs stands in its way. */
  ask(call: Call, signal: AbortSignal): Promise<Asked>;
  /** Tells how long gates took for an Issue, and lets the time of the Spec run while they do. */
  judging<T>(issue: IssueId, judge: () => Promise<T>, tookMs: (result: T) => number): Promise<T>;
  /** The Spec or the run has no budget left for a call that was wanted. */
  refused(): Refusal | null;
  /** What was refused to an Issue. */
  refusedTo(issue: IssueId): Refusal | null;
}

/** A call that has ended, and what that comes to. */
export interface Charged extends Call, SpentFacts {
  readonly usage: Usage;
}

/** What one run spends, over all of its Specs. */
export class RunBudget {
  /** Of all of its Specs: the first call of the next one is not counted as if nothing were known. */
  readonly largest = new LargestCalls();
  readonly #limit: Account['limit'];
  readonly #waiting = new Set<() => void>();
  readonly #uncounted = new Set<keyof Usage>();
  #spent: Amount = nothing;
  #reserved: Amount = nothing;
  #sum: Spending = noSpending;
  #refused: string | null = null;

  constructor(limit: Account['limit']) {
    this.#limit = limit;
  }

  /** What the calls of this run came to so far. */
  get sum(): Spending {
    return this.#sum;
  }

  /** Why the run has no budget left for a call that was wanted; `null`: it had for all of them. */
  get refused(): string | null {
    return this.#refused;
  }

  /** What its limits stand at. */
  get budgets(): readonly BudgetStanding[] {
    return standingsOf([this.account], (_scope, unit) => this.isPartial(unit));
  }

  /** Some call is unknown, and giro.toml allows not to count it. */
  isPartial(unit: keyof Usage): boolean {
    return this.#uncounted.has(unit);
  }

  refuse(why: string): void {
    this.#refused ??= why;
  }

  get account(): Account {
    return { scope: 'run', limit: this.#limit, spent: this.#spent, reserved: this.#reserved };
  }

  reserve(amount: Amount): void {
    this.#reserved = plus(this.#reserved, amount);
  }

  /** Takes a reservation back; `spent` is what the call counted. */
  settle(reserved: Amount, spent: { readonly amount: Amount; readonly usage: Usage } | null): void {
    this.#reserved = minus(this.#reserved, reserved);
    if (spent !== null) {
      this.#spent = plus(this.#spent, spent.amount);
      this.#sum = addUsage(this.#sum, spent.usage);
      for (const unit of ['costUsd', 'tokens'] as const)
        if (spent.usage[unit] === null && spent.amount[unit] === 0) this.#uncounted.add(unit);
    }
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves when a call has ended somewhere, or at an abort. */
  async ended(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}

/** Live numbers of an Issue, or of everything that is of no Issue. */
interface Line {
  past: Ledger;
  spent: Amount;
  reserved: Amount;
  timeMs: number;
}

const noPast: Ledger = { all: [], current: [], answeredAt: null };

/** The budgets of one Spec and its Issues. */
export class SpecBudget implements Budgeting {
  readonly #budget: Pick<Budget, 'issue' | 'spec' | 'unknownCost'>;
  readonly #run: RunBudget;
  readonly #startedAt: number;
  readonly #lines = new Map<IssueId | null, Line>();
  readonly #largest = new LargestCalls();
  readonly #refusedTo = new Map<IssueId, Refusal>();
  readonly #working: WorkingTime;
  readonly #charged: (charged: Charged) => void;
  #sum: Spending = noSpending;
  #refused: Refusal | null = null;

  constructor(
    budget: Pick<Budget, 'issue' | 'spec' | 'unknownCost'>,
    parts: { run: RunBudget; clock: Clock; charged: (charged: Charged) => void },
  ) {
    this.#budget = budget;
    this.#charged = parts.charged;
    this.#run = parts.run;
    this.#startedAt = parts.clock.now();
    this.#working = new WorkingTime(parts.clock);
  }

  /** Takes over what the History of an Issue tells, or of the Spec (`null`); it has everything that was spent until now. */
  take(issue: IssueId | null, past: Ledger): void {
    const { reserved } = this.#line(issue);
    this.#lines.set(issue, { past, spent: nothing, reserved, timeMs: 0 });
    if (issue !== null) this.#refusedTo.delete(issue);
    for (const charge of past.all.flatMap((spell) => spell.charges)) this.#largest.see(charge);
  }

  async ask(call: Call, signal: AbortSignal): Promise<Asked> {
    for (;;) {
      if (signal.aborted) return { kind: 'stopped' };
      const amount = largerOf(this.#largest.of(call), this.#run.largest.of(call));
      const late = this.#outOfTime(call.issue);
      const decision =
        late === null ? decide(this.#accounts(call.issue), amount) : ({ kind: 'refused', refusal: late } as const);
      if (decision.kind === 'refused') return this.#refuse(call.issue, decision.refusal);
      if (decision.kind === 'open') return { kind: 'open', ticket: this.#open(call, amount) };
      await this.#run.ended(signal);
    }
  }

  async judging<T>(issue: IssueId, judge: () => Promise<T>, tookMs: (result: T) => number): Promise<T> {
    const stop = this.#working.start();
    try {
      const result = await judge();
      this.#line(issue).timeMs += tookMs(result);
      return result;
    } finally {
      stop();
    }
  }

  /** What the budgets of money and tokens of an Issue stand at, or of the Spec and the run (`null`). */
  standings(issue: IssueId | null): readonly BudgetStanding[] {
    const accounts = this.#accounts(issue).filter(({ scope }) => (scope === 'issue') === (issue !== null));
    return standingsOf(accounts, (scope, unit) => this.#isPartial(issue, scope, unit));
  }

  /** Some call is unknown, and giro.toml allows not to count it. */
  #isPartial(issue: IssueId | null, scope: Account['scope'], unit: keyof Usage): boolean {
    if (this.#budget.unknownCost !== 'allow') return false;
    if (scope === 'run') return this.#run.isPartial(unit);
    const unknown = unit === 'costUsd' ? this.#sum.unknownCosts : this.#sum.unknownTokens;
    const past = issue === null ? this.#pastOfSpec() : this.#line(issue).past.current;
    return unknown > 0 || past.some((spell) => spell.charges.some(({ usage }) => usage[unit] === null));
  }

  refused(): Refusal | null {
    return this.#refused;
  }

  refusedTo(issue: IssueId): Refusal | null {
    return this.#refusedTo.get(issue) ?? null;
  }

  #refuse(issue: IssueId | null, refusal: Refusal): Asked {
    if (refusal.scope === 'run') this.#run.refuse(refusal.why);
    if (refusal.scope !== 'issue') this.#refused ??= refusal;
    else if (issue !== null) this.#refusedTo.set(issue, refusal);
    return { kind: 'refused', refusal };
  }

  #open(call: Call, amount: Amount): Ticket {
    const line = this.#line(call.issue);
    line.reserved = plus(line.reserved, amount);
    this.#run.reserve(amount);
    const timeLeftMs = this.#timeLeftMs(call.issue);
    const stop = this.#working.start();
    let isOpen = true;
    return {
      timeLeftMs,
      close: (spent) => {
        if (!isOpen) return;
        isOpen = false;
        stop();
        const now = this.#line(call.issue);
        now.reserved = minus(now.reserved, amount);
        if (spent === null) {
          this.#run.settle(amount, null);
          return;
        }
        const { usage, durationMs } = spent;
        const real = counted(usage, amount, this.#budget.unknownCost);
        now.spent = plus(now.spent, real);
        // The time of a judge is told with that of its gates.
        if (call.role !== 'judge') now.timeMs += durationMs;
        for (const largest of [this.#largest, this.#run.largest]) largest.see({ ...call, usage });
        this.#run.settle(amount, { amount: real, usage });
        this.#sum = addUsage(this.#sum, usage);
        this.#charged({ ...call, usage, sum: this.#sum, budgets: this.standings(null) });
      },
    };
  }

  #line(issue: IssueId | null): Line {
    const known = this.#lines.get(issue);
    if (known !== undefined) return known;
    const line: Line = { past: noPast, spent: nothing, reserved: nothing, timeMs: 0 };
    this.#lines.set(issue, line);
    return line;
  }

  /** The widest first: what the run cannot pay no Issue is to be asked about. */
  #accounts(issue: IssueId | null): readonly Account[] {
    const lines = [...this.#lines.values()];
    const spec: Account = {
      scope: 'spec',
      limit: this.#budget.spec,
      spent: plus(
        this.#sumOf(this.#pastOfSpec()),
        lines.reduce((sum, line) => plus(sum, line.spent), nothing),
      ),
      reserved: lines.reduce((sum, line) => plus(sum, line.reserved), nothing),
    };
    if (issue === null) return [this.#run.account, spec];
    const { past, spent, reserved } = this.#line(issue);
    const own = plus(this.#sumOf(past.current), spent);
    return [this.#run.account, spec, { scope: 'issue', limit: this.#budget.issue, spent: own, reserved }];
  }

  /** What was spent on the Spec since a person answered what it asked as a whole. */
  #pastOfSpec(): readonly Spell[] {
    const since = this.#line(null).past.answeredAt ?? -Infinity;
    return [...this.#lines].flatMap(([issue, { past }]) =>
      issue === null ? past.current : past.all.filter((spell) => spell.at >= since),
    );
  }

  #sumOf(spells: readonly Spell[]): Amount {
    return spells
      .flatMap((spell) => spell.charges)
      .reduce(
        (sum, charge) => plus(sum, counted(charge.usage, this.#largest.of(charge), this.#budget.unknownCost)),
        nothing,
      );
  }

  #outOfTime(issue: IssueId | null): Refusal | null {
    const used = this.#timeUsed(issue);
    for (const scope of ['spec', 'issue'] as const) {
      const limitMs = this.#budget[scope].timeMs;
      if (limitMs === null || used[scope] < limitMs) continue;
      const why = `[budget] ${scope}-time is reached: ${formatLimit(limitMs)} were worked`;
      return { scope, why };
    }
    return null;
  }

  #timeLeftMs(issue: IssueId | null): number | null {
    const used = this.#timeUsed(issue);
    const left = (['spec', 'issue'] as const).flatMap((scope) => {
      const limitMs = this.#budget[scope].timeMs;
      return limitMs === null ? [] : [Math.max(1, Math.ceil(limitMs - used[scope]))];
    });
    return left.length === 0 ? null : Math.min(...left);
  }

  #timeUsed(issue: IssueId | null): { readonly spec: number; readonly issue: number } {
    const { spec, issue: own }: { spec: Allowance; issue: Allowance } = this.#budget;
    const line = issue === null ? null : this.#line(issue);
    return {
      spec: spec.timeMs === null ? 0 : unionMs(this.#earlier()) + this.#working.ms,
      issue:
        own.timeMs === null || line === null
          ? 0
          : line.past.current.reduce((sum, spell) => sum + spell.durationMs, line.timeMs),
    };
  }

  /** What began in this run is measured by the clock. */
  #earlier(): readonly Spell[] {
    return this.#pastOfSpec().filter((spell) => spell.at + 1000 <= this.#startedAt);
  }
}

/** For how long at least one of several works. */
class WorkingTime {
  readonly #clock: Clock;
  #since: number | null = null;
  #running = 0;
  #ms = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get ms(): number {
    return this.#ms + (this.#since === null ? 0 : this.#clock.monotonic() - this.#since);
  }

  /** Begins something; the result ends it. */
  start(): () => void {
    if (this.#running === 0) this.#since = this.#clock.monotonic();
    this.#running += 1;
    return () => {
      this.#running -= 1;
      if (this.#running > 0) return;
      this.#ms = this.ms;
      this.#since = null;
    };
  }
}

/** For how long at least one of these spells was going on. */
export function unionMs(spells: readonly Pick<Spell, 'at' | 'durationMs'>[]): number {
  const sorted = [...spells].sort((left, right) => left.at - right.at);
  let [total, end] = [0, -Infinity];
  for (const { at, durationMs } of sorted) {
    const until = at + durationMs;
    total += Math.max(0, until - Math.max(at, end));
    end = Math.max(end, until);
  }
  return total;
}
