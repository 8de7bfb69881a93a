/** What a gate demands: in one line for people, and as a hash for everything that a verdict is bound to. Pure. */
import { createHash } from 'node:crypto';
import { unreachable } from '../failure.js';
import type { GateDefinition } from '../policy.js';

/** Says in one line what a gate does. */
export function describeGate(gate: GateDefinition): string {
  switch (gate.kind) {
    case 'command':
      return gate.run;
    case 'prompt':
      return gate.rubric.source === null ? 'a judge, by a rubric in giro.toml' : `a judge, by ${gate.rubric.source}`;
    case 'skill':
      return `a judge, by the skill ${gate.skill.name} (${gate.skill.path})`;
    default:
      return unreachable(gate);
  }
}

/** What programs that look at a plan are told of a gate. */
export function gateFacts(gate: GateDefinition): Readonly<Record<string, unknown>> {
  const { name, kind, on, timeoutMs } = gate;
  return { name, kind, run: describeGate(gate), on, timeoutMs };
}

/**
 * Hashes everything that decides what a gate demands. Name, scope, time limit and order are no part of it: none of them changes
 * what a green gate has shown.
 */
export function definitionHash(gate: GateDefinition): string {
  return createHash('sha256')
    .update(JSON.stringify([1, gate.kind, demandOf(gate), [...gate.env].sort()]))
    .digest('hex');
}

function demandOf(gate: GateDefinition): unknown {
  switch (gate.kind) {
    case 'command':
      return [gate.run, gate.rules];
    case 'prompt':
      return gate.rubric.text;
    case 'skill':
      return gate.skill.text;
    default:
      return unreachable(gate);
  }
}
