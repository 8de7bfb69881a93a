/**
 * What was spent, read back from `## History`: the ledger of the budgets. Only lines that giro alone writes are read; whatever
 * foreign text could pass for one of them would add to what was spent, and never take anything away.
 */
import { readDuration } from '../platform/duration.js';
import { addUsage, noSpending, readUsage, unknownUsage, type Charge, type Spending } from '../usage.js';
import type { Ledger, Spell } from '../record.js';
import { sinceAnswer, type HistoryEntry } from './history.js';

/** Reads the ledger of an Issue or of a Spec. */
export function ledgerOf(entries: readonly HistoryEntry[]): Ledger {
  const answer = entries.findLast((entry) => entry.kind === 'answered');
  return {
    all: entries.flatMap(spellOf),
    current: sinceAnswer(entries).flatMap(spellOf),
    answeredAt: answer === undefined ? null : timeOf(answer.text),
  };
}

/** Sums up what all calls of a History took. */
export function spendingOf(entries: readonly HistoryEntry[]): Spending {
  return entries
    .flatMap(spellOf)
    .flatMap((spell) => spell.charges)
    .reduce((sum, { usage }) => addUsage(sum, usage), noSpending);
}

const spells = new WeakMap<HistoryEntry, readonly Spell[]>();

function spellOf(entry: HistoryEntry): readonly Spell[] {
  const known = spells.get(entry) ?? readSpell(entry);
  spells.set(entry, known);
  return known;
}

function readSpell(entry: HistoryEntry): readonly Spell[] {
  const gates = gatesIn(entry.text);
  const judged = gates.flatMap((gate) => (gate.charge === null ? [] : [gate.charge]));
  const at = timeOf(entry.text) ?? 0;
  switch (entry.kind) {
    case 'attempt':
    case 'plan': {
      const agent = agentOf(entry);
      const durationMs = gates.reduce((sum, gate) => sum + gate.durationMs, agent.durationMs);
      return [{ at, durationMs, charges: [...agent.charges, ...judged] }];
    }
    case 'integration':
    case 'integrated':
    case 'validated':
      return judged.length === 0 ? [] : [{ at, durationMs: 0, charges: judged }];
    case 'escalated':
    case 'answered':
    case 'other':
      return [];
  }
}

/** The call that an entry was opened for: its cost is unknown until it says otherwise. */
function agentOf(entry: HistoryEntry): { readonly durationMs: number; readonly charges: readonly Charge[] } {
  const driver = /^### .*$/m.exec(entry.text)?.[0].split(' · ').at(2) ?? '';
  const parts = (/^base .*$/m.exec(entry.text)?.[0] ?? '').split(' · ');
  const durationMs = parts.flatMap((part) => readDuration(part) ?? []).at(0) ?? 0;
  const role = entry.kind === 'plan' ? 'planner' : 'worker';
  const usage = readUsage(parts);
  if (usage !== null) return { durationMs, charges: [{ role, driver, usage }] };
  // Somebody worked, but no model; or nothing that could have was started.
  const wasTold =
    parts.some((part) => /^\d+ files? \+\d/.test(part)) ||
    driver === 'by hand' ||
    driver === 'judged again' ||
    /^verdict: operation$/m.test(entry.text);
  return { durationMs, charges: wasTold ? [] : [{ role, driver, usage: unknownUsage }] };
}

function gatesIn(text: string): readonly { readonly durationMs: number; readonly charge: Charge | null }[] {
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith('- gate ')) return [];
    const note = /^- gate \S+: (?:pass|fail) · (.*)$/.exec(line)?.[1];
    if (note === undefined) return [];
    const parts = note.split(' · ');
    const usage = readUsage(parts);
    const driver = (parts[0] ?? '').replace(/ \(.*$/, '');
    const durationMs = parts.flatMap((part) => readDuration(part) ?? []).at(0) ?? 0;
    return [{ durationMs, charge: usage === null ? null : { role: 'judge' as const, driver, usage } }];
  });
}

function timeOf(text: string): number | null {
  const at = Date.parse(/^### .*? · (\S+Z)(?: · |$)/m.exec(text)?.[1] ?? '');
  return Number.isNaN(at) ? null : at;
}
