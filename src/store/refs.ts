/** Names of the refs that giro owns (DESIGN 4); always full names. */
import type { IssueId, SpecSlug } from '../issue.js';

/** The integration branch of a Spec. */
export function integrationRef(spec: SpecSlug): string {
  return `refs/heads/giro/${spec}`;
}

/** The branch of one Issue; not under `giro/<spec>`, since git cannot hold both. */
export function issueRef(spec: SpecSlug, issue: IssueId): string {
  return `refs/heads/giro-issue/${spec}/${issue}`;
}

/** Where the branches of all Issues of a Spec lie. */
export function issueRefPrefix(spec: SpecSlug): string {
  return `refs/heads/giro-issue/${spec}/`;
}

/** Shows a branch ref as people type it. */
export function branchName(ref: string): string {
  return ref.replace(/^refs\/heads\//, '');
}
