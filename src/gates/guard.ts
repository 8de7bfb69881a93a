/**
 * Guards: what no attempt may do to the files, whatever its gates say (DESIGN 8). They look at the difference between the
 * Issue's base and its work; no model is asked, and no setting switches them off.
 *
 * G1 A rule sees every change of the work once, and says what it found at the end: what was moved, split or renamed is
 *    told from what is gone over the whole difference, never by file.
 * G2 Only changed files are read, each once, what stood before only when a rule needs it, and nothing over `readLimit`.
 */
import type { Finding } from '../issue.js';
import { Contents } from './guard-contents.js';
import { conflictRule } from './guard-conflict.js';
import { gateFileRule } from './guard-gate-files.js';
import { matcher, namesSomething } from './guard-globs.js';
import { deletedRule, kindRule } from './guard-kinds.js';
import { limitRule, scopeRule } from './guard-limits.js';
import { protectedRule } from './guard-protected.js';
import type { GuardChange, GuardRule, GuardedFile, GuardedWork, RuleContext } from './guard-rule.js';
import { secretRule } from './guard-secrets.js';
import { shrinkRule } from './guard-shrink.js';
import { thresholdRule } from './guard-thresholds.js';

const atOnce = 32;
const mostOfARule = 20;

/** Makes one rule for one work. */
export type RuleMaker = (context: RuleContext) => GuardRule | Promise<GuardRule>;

/** Every rule there is, in the order in which their findings are told. */
export const guardRules: readonly RuleMaker[] = [
  protectedRule,
  gateFileRule,
  thresholdRule,
  shrinkRule,
  deletedRule,
  kindRule,
  limitRule,
  scopeRule,
  conflictRule,
  secretRule,
];

/** Gives what the guards find; empty when there is nothing to say. Which rules there are is decided in `cli/`: all of them. */
export async function guardFindings(work: GuardedWork, makers: readonly RuleMaker[]): Promise<readonly Finding[]> {
  if (work.changes.length === 0) return [];
  const contents = new Contents(work.blobs);
  const context: RuleContext = {
    work,
    contents,
    touched: matcher(work.issue.touches.filter(namesSomething)),
    testsAllow: matcher(work.issue.tests.filter(namesSomething)),
    moved: movedFiles(work.changes),
  };
  const rules: GuardRule[] = [];
  for (const make of makers) rules.push(await make(context));
  for (let at = 0; at < work.changes.length; at += atOnce) {
    const files = await Promise.all(work.changes.slice(at, at + atOnce).map((change) => read(change, contents, rules)));
    for (const file of files) for (const rule of rules) rule.see(file);
  }
  return rules.flatMap((rule) => limited(rule.findings()));
}

async function read(change: GuardChange, contents: Contents, rules: readonly GuardRule[]): Promise<GuardedFile> {
  const after = await contents.of(change.newOid, change.newMode);
  const needed = rules.some((rule) => rule.needsBefore(change, after));
  return { change, after, before: needed ? await contents.of(change.oldOid, change.oldMode) : null };
}

/** Pairs what is gone with what is new under another name, byte for byte. */
function movedFiles(changes: readonly GuardChange[]): ReadonlySet<string> {
  const gone = new Map<string, string[]>();
  for (const { status, path, oldOid, oldMode } of changes) {
    if (status !== 'deleted') continue;
    const key = `${oldMode} ${oldOid ?? ''}`;
    gone.set(key, [...(gone.get(key) ?? []), path]);
  }
  const moved = new Set<string>();
  for (const { status, path, newOid, newMode } of changes) {
    const from = status === 'added' ? gone.get(`${newMode} ${newOid ?? ''}`)?.pop() : undefined;
    if (from !== undefined) moved.add(from).add(path);
  }
  return moved;
}

function limited(findings: readonly Finding[]): readonly Finding[] {
  const [first] = findings;
  const more = findings.length - mostOfARule;
  if (first === undefined || more <= 0) return findings;
  const rest = {
    ...(first.rule === undefined ? {} : { rule: first.rule }),
    message: `and ${String(more)} more of the kind`,
  };
  return [...findings.slice(0, mostOfARule), rest];
}
