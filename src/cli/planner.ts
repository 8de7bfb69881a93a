/** The planner of a run: its driver, in a clean checkout of the commit that it plans for. */
import { join } from 'node:path';
import type { Driver } from '../drivers/driver.js';
import { plannerContract } from '../drivers/planner.js';
import type { Result } from '../failure.js';
import type { Oid, SpecSlug } from '../issue.js';
import type { PlannerReply } from '../loop/plan-loop.js';
import type { Environment } from '../platform/environment.js';
import type { Policy } from '../policy.js';
import { unknownUsage } from '../usage.js';
import type { Slot } from '../worktree/slots.js';
import type { Planner } from './planning.js';

/** Hands out a folder to read a commit in, for as long as `use` runs. */
export type WithReading = <T>(
  commit: Oid,
  use: (checkout: { readonly folder: string; readonly slot: Slot }) => Promise<T>,
) => Promise<Result<T, { readonly message: string; readonly tail: string }>>;

/** What the planner works with. */
export interface PlannerPorts {
  readonly driver: Driver;
  readonly policy: Policy;
  readonly spec: SpecSlug;
  readonly withReading: WithReading;
  /** The allow-list with what the driver names, and what depends on the slot. */
  readonly environment: (slot: Slot) => Environment;
  readonly runFolder: string;
  readonly signal: AbortSignal;
}

/** Makes the planner of a run. */
export function createPlanner(ports: PlannerPorts): Planner {
  const { driver, policy, spec, signal } = ports;
  const logFile = (plan: number) => join(ports.runFolder, 'agents', `plan.${String(plan)}.log`);
  return {
    driver: driver.name,
    logFile,
    async run({ plan, commit, prompt, timeLeftMs }): Promise<PlannerReply> {
      const envelopeFile = join(ports.runFolder, 'agents', `plan.${String(plan)}.envelope.json`);
      const read = ({ folder, slot }: { readonly folder: string; readonly slot: Slot }) =>
        driver.run(
          {
            role: 'planner',
            spec,
            issue: null,
            gate: null,
            attempt: plan,
            prompt,
            folder,
            environment: {
              ...ports.environment(slot),
              GIRO_ROLE: 'planner',
              GIRO_SPEC: spec,
              GIRO_ATTEMPT: String(plan),
              GIRO_ENVELOPE: envelopeFile,
            },
            envelopeFile,
            logFile: logFile(plan),
            timeoutMs: Math.min(policy.budget.attemptTimeoutMs, timeLeftMs ?? Infinity),
            graceMs: policy.limits.graceMs,
            signal,
          },
          plannerContract,
        );
      const called = await ports.withReading(commit, read);
      if (called.ok) return called.value;
      if (signal.aborted) return stopped;
      const { message, tail } = called.failure;
      return { result: { kind: 'operation', reason: message }, durationMs: 0, tail, usage: unknownUsage };
    },
  };
}

const stopped: PlannerReply = { result: { kind: 'stopped' }, durationMs: 0, tail: '', usage: unknownUsage };
