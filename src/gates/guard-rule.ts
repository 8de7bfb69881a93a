/** What a guard is made of: the work it looks at, one rule, a finding. */
import type { Finding, IssueId, Oid, SpecSlug } from '../issue.js';
import { printable } from '../platform/text.js';
import type { Policy } from '../policy.js';
import type { BlobSource, Content, Contents } from './guard-contents.js';

/** One file that differs between base and work. */
export interface GuardChange {
  readonly path: string;
  readonly status: 'added' | 'modified' | 'deleted' | 'type-changed';
  /** `000000` when there was none. */
  readonly oldMode: string;
  readonly newMode: string;
  readonly oldOid: Oid | null;
  readonly newOid: Oid | null;
  readonly insertions: number;
  readonly deletions: number;
}

/** The work that is guarded. */
export interface GuardedWork {
  readonly changes: readonly GuardChange[];
  readonly blobs: BlobSource;
  /** What the base has at a path; `null` when nothing. */
  readonly base: (path: string) => Promise<Oid | null>;
  readonly spec: SpecSlug;
  readonly issue: { readonly id: IssueId; readonly touches: readonly string[]; readonly tests: readonly string[] };
  readonly policy: Pick<Policy, 'gates' | 'protect' | 'limits' | 'drivers' | 'worktree'>;
}

/** One changed file with its content. */
export interface GuardedFile {
  readonly change: GuardChange;
  /** `null` when no rule asked for it. */
  readonly before: Content | null;
  readonly after: Content;
}

/** One rule while it looks at one work. */
export interface GuardRule {
  /** Whether it needs what stood there before. */
  needsBefore(change: GuardChange, after: Content): boolean;
  see(file: GuardedFile): void;
  findings(): readonly Finding[];
}

/** What every rule is made with. */
export interface RuleContext {
  readonly work: GuardedWork;
  readonly contents: Contents;
  /** Whether `touches` names a file, not merely all files. */
  readonly touched: (path: string) => boolean;
  /** Whether `tests` of the Issue does. */
  readonly testsAllow: (path: string) => boolean;
  /** Files that were moved as they are: the deletion and the addition. */
  readonly moved: ReadonlySet<string>;
}

/** A finding of a rule: what is wrong, and in which ways a person can allow it. */
export function guardFinding(
  work: Pick<GuardedWork, 'spec' | 'issue'>,
  found: {
    readonly rule: string;
    readonly file?: string;
    readonly line?: number;
    readonly message: string;
    /** Ways beyond `giro answer --accept`, such as a key of the Issue. */
    readonly allow?: string;
  },
): Finding {
  const { rule, file, line, message, allow } = found;
  const accept = `giro answer ${work.spec}/${work.issue.id} --accept <id>`;
  return {
    rule,
    ...(file === undefined ? {} : { file }),
    ...(line === undefined ? {} : { line }),
    message: `guard ${rule}: ${message} (a person can allow it: ${allow === undefined ? '' : `${allow}, or `}${accept})`,
  };
}

/** How an Issue names a file in one of its keys. */
export function inIssue(key: 'touches' | 'tests', path: string): string {
  return `${key}: [${JSON.stringify(printable(path))}] in the Issue`;
}
