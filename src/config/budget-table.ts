/** Reads `[budget]`: how often, how long and for how much the loops may try. */
import { z } from 'zod';
import type { Allowance, Budget, DriverDefinition, GateDefinition, Policy } from '../policy.js';
import { leastCall } from '../usage.js';
import { checkTable, duration, wholeNumber, word, type Checked, type Problem } from './check.js';

const minuteMs = 60_000;

const budgetSchema = z.strictObject({
  attempts: wholeNumber(1, 100).default(3),
  'attempt-timeout': duration().default(30 * minuteMs),
  rounds: wholeNumber(1, 100).default(3),
  failures: wholeNumber(1, 100).default(3),
  'no-progress': wholeNumber(1, 100).default(3),
  blocked: wholeNumber(1, 100).default(1),
  'issue-time': duration().exactOptional(),
  'spec-time': duration().exactOptional(),
  'issue-tokens': tokens(),
  'spec-tokens': tokens(),
  'run-tokens': tokens(),
  'issue-cost': money(),
  'spec-cost': money(),
  'run-cost': money(),
  'unknown-cost': word(['refuse', 'allow']).default('refuse'),
});

function tokens() {
  return wholeNumber(leastCall.tokens, 1e12).exactOptional();
}

function money() {
  const error = `must be an amount of USD between ${leastCall.costUsd} and 1000000`;
  return z.number({ error }).min(leastCall.costUsd, { error }).max(1e6, { error }).exactOptional();
}

/** Reads the table. */
export function readBudget(input: unknown): Checked<Budget> {
  const { problems, value } = checkTable(budgetSchema, input ?? {}, ['budget']);
  if (value === undefined) return { problems };
  const { attempts, rounds, failures, blocked } = value;
  const often = { attempts, rounds, failures, blocked, noProgress: value['no-progress'] };
  return {
    problems,
    value: {
      ...often,
      attemptTimeoutMs: value['attempt-timeout'],
      issue: {
        timeMs: value['issue-time'] ?? null,
        tokens: value['issue-tokens'] ?? null,
        costUsd: value['issue-cost'] ?? null,
      },
      spec: {
        timeMs: value['spec-time'] ?? null,
        tokens: value['spec-tokens'] ?? null,
        costUsd: value['spec-cost'] ?? null,
      },
      run: { tokens: value['run-tokens'] ?? null, costUsd: value['run-cost'] ?? null },
      unknownCost: value['unknown-cost'],
    },
  };
}

/** What decides which drivers are called. */
export interface InUse {
  readonly drivers: ReadonlyMap<string, DriverDefinition>;
  readonly roles: Policy['roles'];
  readonly gates: readonly GateDefinition[];
}

/** A limit on what nobody reports would hold nothing: unknown is not 0. */
export function checkUnknown(budget: Budget, inUse: InUse): readonly Problem[] {
  if (budget.unknownCost === 'allow') return [];
  return (['issue', 'spec', 'run'] as const).flatMap((scope) =>
    limited(budget[scope]).flatMap(({ unit, key }) => {
      const silent = silentDriver(unit, inUse);
      if (silent === null) return [];
      const what = unit === 'cost' ? 'what a call cost' : 'how many tokens a call took';
      return {
        path: ['budget', `${scope}-${key}`],
        part: 'value' as const,
        message: `\`${scope}-${key}\` cannot hold: the ${silent.role} driver \`${silent.name}\` does not report ${what}`,
        hint: unknownHint(unit, silent.name),
      };
    }),
  );
}

function limited({ costUsd, tokens }: Pick<Allowance, 'costUsd' | 'tokens'>) {
  const cost = { unit: 'cost', key: 'cost' } as const;
  const counted = { unit: 'tokens', key: 'tokens' } as const;
  return [...(costUsd === null ? [] : [cost]), ...(tokens === null ? [] : [counted])];
}

/** Says what to do about a driver that does not report. */
export function unknownHint(unit: 'cost' | 'tokens', driver: string): string {
  return `write \`reports-${unit} = true\` into [driver.${driver}] if its envelope says it, or \`unknown-cost = "allow"\` into [budget]`;
}

/** Finds a driver in use that does not say what it spends; judges are in use when a gate asks for one. */
export function silentDriver(
  unit: 'cost' | 'tokens',
  { drivers, roles, gates }: InUse,
): { readonly role: 'worker' | 'judge' | 'planner'; readonly name: string } | null {
  const judged = gates.some((gate) => gate.kind !== 'command');
  const used = (['worker', 'planner', 'judge'] as const).filter((role) => role !== 'judge' || judged);
  const role = used.find((one) => drivers.get(roles[one])?.reports[unit] !== true);
  return role === undefined ? null : { role, name: roles[role] };
}
