/** Policies for what is tested without a giro.toml. */
import type { GateDefinition, Policy } from '../../src/policy.js';

const noRules = { minTests: null, mustMatch: null, mustNotMatch: null, junit: null };

/** A command gate. */
export function gate(name: string, on: GateDefinition['on'] = ['issue', 'integration', 'spec']): GateDefinition {
  return {
    name,
    kind: 'command',
    run: `npm run ${name}`,
    on,
    timeoutMs: 1000,
    env: [],
    afterGreen: false,
    rules: noRules,
  };
}

/** Those of giro.toml when it does not say. */
export const processLimits = { processes: 4_096, memoryBytes: null };

const unlimited = { timeMs: null, tokens: null, costUsd: null };

/** A policy with this budget and these gates. */
export function policyOf(
  budget: Partial<Policy['budget']> = {},
  gates: readonly GateDefinition[] = [gate('test')],
): Policy {
  return {
    drivers: { default: 'claude', byName: new Map() },
    roles: { worker: 'claude', judge: 'claude', planner: 'claude' },
    budget: {
      attempts: 3,
      attemptTimeoutMs: 1000,
      rounds: 1,
      failures: 3,
      noProgress: 3,
      blocked: 1,
      issue: unlimited,
      spec: unlimited,
      run: unlimited,
      unknownCost: 'refuse',
      ...budget,
    },
    limits: {
      agents: 2,
      gates: 2,
      graceMs: 10,
      ...processLimits,
      files: 200,
      lines: 10_000,
      fileBytes: 5 * 1024 * 1024,
    },
    gates,
    evidence: { baseline: 'fail', flaky: 'fail', proof: null },
    integrate: { base: 'never' },
    worktree: { git: 'linked', setupTimeoutMs: 1, inputs: [], keep: [], copy: [], link: [] },
    protect: { paths: [], tests: [], assertions: [], scope: 'open' },
    digest: 'digest',
  };
}
