/** Files that are gone, and files that are no plain text: links, pointers, binaries, new permissions, too large ones. */
import type { Finding } from '../issue.js';
import { textOf, type Content } from './guard-contents.js';
import { guardFinding, inIssue, type GuardChange, type GuardRule, type RuleContext } from './guard-rule.js';
import { testFiles } from './guard-shrink.js';

/** Of a file that is gone, so much must stand elsewhere in the work, or it is not moved but deleted. */
const shareThatMoved = 0.5;

/**
 * Finds deleted files that `touches` does not name. A file whose lines stand elsewhere in the work was moved, split or
 * joined; a file with tests is the business of `shrink`.
 */
export function deletedRule({ work, touched, moved }: RuleContext): GuardRule {
  const languageOf = testFiles(work.policy.protect.tests);
  const isGone = (change: GuardChange): boolean =>
    change.status === 'deleted' && !moved.has(change.path) && !touched(change.path);
  const wanted = work.changes.some(isGone);
  const gone: { readonly path: string; readonly lines: readonly string[] }[] = [];
  const written = new Set<string>();
  return {
    needsBefore: isGone,
    see({ change, before, after }) {
      if (!wanted) return;
      for (const line of linesOf(after)) written.add(line);
      if (!isGone(change)) return;
      if (before?.kind === 'text' && languageOf(change.path) !== null && languageOf(change.path)?.name !== 'any')
        return;
      gone.push({ path: change.path, lines: linesOf(before) });
    },
    findings: () =>
      gone
        .filter(({ lines }) => lines.length === 0 || share(lines, written) < shareThatMoved)
        .map(({ path }) => {
          const message = 'deleted, though the Issue does not name it; put it back';
          return guardFinding(work, { rule: 'deleted', file: path, message, allow: inIssue('touches', path) });
        }),
  };
}

/** Lines that say something. */
function linesOf(content: Content | null): readonly string[] {
  return textOf(content)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.length > 3);
}

function share(lines: readonly string[], written: ReadonlySet<string>): number {
  return lines.filter((line) => written.has(line)).length / lines.length;
}

const lfsPointer = 'version https://git-lfs.github.com/spec/v1\n';

/** Finds links, LFS pointers, binaries and changed permissions that `touches` does not name. */
export function kindRule({ work, touched, moved }: RuleContext): GuardRule {
  const findings: Finding[] = [];
  return {
    needsBefore: () => false,
    see({ change, after }) {
      if (change.newOid === null || moved.has(change.path)) return;
      if (touched(change.path)) return;
      for (const [rule, message] of kinds(change, after)) {
        const allow = inIssue('touches', change.path);
        findings.push(guardFinding(work, { rule, file: change.path, message, allow }));
      }
    },
    findings: () => findings,
  };
}

function kinds(change: GuardChange, after: Content): readonly (readonly [rule: string, message: string])[] {
  const { oldMode, newMode, oldOid, newOid } = change;
  const found: [string, string][] = [];
  if (newMode === '120000') found.push(['symlink', 'a symbolic link that is new or changed; put back what was there']);
  if (change.status === 'modified' && oldMode !== newMode) {
    const now = newMode === '100755' ? 'executable now, and was not' : 'not executable any more';
    found.push(['mode', `${now}; put the permission back`]);
  }
  if (oldOid === newOid) return found;
  if (after.kind === 'binary') found.push(['binary', 'a binary file that is new or changed; leave it out']);
  if (textOf(after).startsWith(lfsPointer)) found.push(['lfs', 'an LFS pointer that is new or changed; leave it out']);
  return found;
}
