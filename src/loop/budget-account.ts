/** What may be spent on calls of models, as arithmetic. Pure. */
import { formatCost, formatTokens, leastCall, type BudgetStanding, type Charge, type Usage } from '../usage.js';

/** An amount of money and of tokens. */
export interface Amount {
  readonly costUsd: number;
  readonly tokens: number;
}

/** What one budget stands at. */
export interface Account {
  /** As giro.toml calls it: `issue`, `spec` or `run`. */
  readonly scope: 'issue' | 'spec' | 'run';
  readonly limit: { readonly costUsd: number | null; readonly tokens: number | null };
  readonly spent: Amount;
  /** What the calls that run now are counted at. */
  readonly reserved: Amount;
}

/** Which budget has no room for a call. */
export interface Refusal {
  readonly scope: Account['scope'];
  readonly why: string;
}

/** Whether a call may be made: now, once something that runs has ended, or not at all. */
export type Decision =
  { readonly kind: 'open' } | { readonly kind: 'wait' } | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Nothing. */
export const nothing: Amount = { costUsd: 0, tokens: 0 };

/** Adds two amounts. */
export function plus(left: Amount, right: Amount): Amount {
  return { costUsd: left.costUsd + right.costUsd, tokens: left.tokens + right.tokens };
}

/** Takes an amount away. */
export function minus(left: Amount, right: Amount): Amount {
  return { costUsd: Math.max(0, left.costUsd - right.costUsd), tokens: Math.max(0, left.tokens - right.tokens) };
}

/** Gives the larger of each. */
export function largerOf(left: Amount, right: Amount): Amount {
  return { costUsd: Math.max(left.costUsd, right.costUsd), tokens: Math.max(left.tokens, right.tokens) };
}

/** Decides a call that is counted at `amount`: whatever runs is counted at its own. */
export function decide(accounts: readonly Account[], amount: Amount): Decision {
  for (const account of accounts) {
    const refusal = refusalOf(account, amount);
    if (refusal !== null) return { kind: 'refused', refusal };
  }
  const fits = accounts.every(({ limit, spent, reserved }) => {
    const all = plus(plus(spent, reserved), amount);
    return within(all.costUsd, limit.costUsd, waiting) && within(all.tokens, limit.tokens, waiting);
  });
  return { kind: fits ? 'open' : 'wait' };
}

/** Says what is spent of each limit that there is. */
export function standingsOf(
  accounts: readonly Account[],
  isPartial: (scope: Account['scope'], unit: keyof Usage) => boolean = () => false,
): readonly BudgetStanding[] {
  const partly = (scope: Account['scope'], unit: keyof Usage): Pick<BudgetStanding, 'atLeast'> =>
    isPartial(scope, unit) ? { atLeast: true } : {};
  return accounts.flatMap(({ scope, limit, spent }): readonly BudgetStanding[] => [
    ...(limit.costUsd === null
      ? []
      : [{ key: `${scope}-cost` as const, spent: spent.costUsd, limit: limit.costUsd, ...partly(scope, 'costUsd') }]),
    ...(limit.tokens === null
      ? []
      : [{ key: `${scope}-tokens` as const, spent: spent.tokens, limit: limit.tokens, ...partly(scope, 'tokens') }]),
  ]);
}

function refusalOf({ scope, limit, spent }: Account, amount: Amount): Refusal | null {
  if (limit.costUsd !== null && !within(spent.costUsd + amount.costUsd, limit.costUsd)) {
    const [used, next, most] = [spent.costUsd, amount.costUsd, limit.costUsd].map(formatCost);
    return { scope, why: whyOf(`${scope}-cost`, { used, next, most }) };
  }
  if (limit.tokens !== null && !within(spent.tokens + amount.tokens, limit.tokens)) {
    const [used, next, most] = [spent.tokens, amount.tokens, limit.tokens].map(formatTokens);
    return { scope, why: whyOf(`${scope}-tokens`, { used, next, most }) };
  }
  return null;
}

function whyOf(key: string, shown: Readonly<Record<'used' | 'next' | 'most', string | undefined>>): string {
  const { used = '', next = '', most = '' } = shown;
  return `[budget] ${key} is reached: ${used} of ${most} spent, and the next call is counted at ${next}`;
}

/**
 * Sums of binary fractions are a little off. What is not refused must fit once nothing runs any more, although reservations that
 * were taken back may have left a trace: there the slack is larger.
 */
function within(value: number, limit: number | null, slack = 1e-9): boolean {
  return limit === null || value <= limit + slack;
}

const waiting = 1e-6;

/** The largest call of each kind that was seen, and what a call of a kind is counted at before it is made. */
export class LargestCalls {
  readonly #largest = new Map<string, Amount>();

  /** Takes note of a call. */
  see({ role, driver, usage }: Charge): void {
    const key = `${role} ${driver}`;
    const { costUsd, tokens } = this.#largest.get(key) ?? nothing;
    this.#largest.set(key, {
      costUsd: Math.max(costUsd, usage.costUsd ?? 0),
      tokens: Math.max(tokens, usage.tokens ?? 0),
    });
  }

  /** What a call is counted at while it runs, and for good when nobody says what it took. */
  of({ role, driver }: Pick<Charge, 'role' | 'driver'>): Amount {
    const seen = this.#largest.get(`${role} ${driver}`) ?? nothing;
    return {
      costUsd: Math.max(leastCall.costUsd, seen.costUsd),
      tokens: Math.max(leastCall.tokens, seen.tokens),
    };
  }
}

/** What a call counts when it has ended: what is unknown counts as it was reserved, unless that is allowed. */
export function counted(usage: Usage, reserved: Amount, unknown: 'refuse' | 'allow'): Amount {
  const instead = unknown === 'allow' ? nothing : reserved;
  return { costUsd: usage.costUsd ?? instead.costUsd, tokens: usage.tokens ?? instead.tokens };
}
