/** Reads the verdicts back that History tells of: what a proof is made from. Pure. */
import { readDuration } from '../platform/duration.js';
import type { DefinitionRecord, GateRecord } from '../record.js';

const gateLine = /^- gate (\S+): (pass|fail)((?: · .*)?)$/;
const sameTree = 'same code tree, verified before';

/** Reads the gates of an entry, in their order. Foreign text stands behind other bullets or indented. */
export function readGateRecords(entry: string): readonly GateRecord[] {
  return entry.split('\n').flatMap((line) => {
    const [, gate, verdict, rest] = gateLine.exec(line) ?? [];
    if (gate === undefined || (verdict !== 'pass' && verdict !== 'fail')) return [];
    return [readParts(gate, verdict, (rest ?? '').split(' · ').slice(1))];
  });
}

function readParts(gate: string, verdict: 'pass' | 'fail', parts: readonly string[]): GateRecord {
  const value = (pattern: RegExp): string | null =>
    parts.map((part) => pattern.exec(part)?.[1]).find((found) => found !== undefined) ?? null;
  const exit = value(/^exit (\d+)$/);
  const duration = parts.map(readDuration).find((ms) => ms !== undefined);
  return {
    gate,
    verdict,
    cached: parts.includes(sameTree),
    exit: exit === null ? null : Number(exit),
    durationMs: duration ?? null,
    tests: value(/^(\d+ tests?\b.*)$/),
    definition: value(/^definition ([0-9a-f]+)$/),
    log: value(/^log ([0-9a-f]+)$/),
    prompt: value(/^prompt ([0-9a-f]+)$/),
    waived: parts.at(-1) === 'waived',
    notes: parts.filter((part) => !isKnown(part)),
  };
}

function isKnown(part: string): boolean {
  return (
    part === sameTree ||
    readDuration(part) !== undefined ||
    /^(?:exit \d+|\d+ tests?\b.*|(?:definition|log|prompt) [0-9a-f]+)$/.test(part)
  );
}

/** Reads what the gates demanded from the entry of a validation. */
export function readDefinitions(entry: string): readonly DefinitionRecord[] {
  return entry.split('\n').flatMap((line) => {
    const [, definition, gate, demand] = /^definition ([0-9a-f]+) (\S+): (.*)$/.exec(line) ?? [];
    return definition === undefined || gate === undefined ? [] : [{ gate, definition, demand: demand ?? '' }];
  });
}

/** Reads when an entry was written; empty when it does not say. */
export function timeOf(entry: string): string {
  return /^### [^·\n]*· (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)/.exec(entry)?.[1] ?? '';
}
