/** Both sides of a conflict, left in a file. */
import { linesIn, textOf } from './guard-contents.js';
import { guardFinding, type GuardRule, type RuleContext } from './guard-rule.js';
import type { Finding } from '../issue.js';

/** Finds conflict marks that the base did not have. */
export function conflictRule({ work }: RuleContext): GuardRule {
  const findings: Finding[] = [];
  return {
    needsBefore: (_change, after) => markedAt(textOf(after)) !== null,
    see({ change, before, after }) {
      const at = markedAt(textOf(after));
      if (at === null || markedAt(textOf(before)) !== null) return;
      const line = linesIn(textOf(after))(at);
      const message = 'conflict marks are left in the file';
      findings.push(guardFinding(work, { rule: 'conflict', file: change.path, line, message }));
    },
    findings: () => findings,
  };
}

function markedAt(text: string): number | null {
  if (!text.includes('<<<<<<< ')) return null;
  const start = /^<{7} /m.exec(text)?.index;
  return start !== undefined && /^>{7} /m.test(text.slice(start)) ? start : null;
}
