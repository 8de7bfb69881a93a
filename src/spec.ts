/** A goal worth an integration branch, as values. */
import type { Issue, SpecSlug } from './issue.js';

/** The durable states of a Spec (DESIGN 4). */
export type SpecState = 'draft' | 'active' | 'done' | 'needs-human';

/** One Spec with all its Issues, as read from its folder. */
export interface Spec {
  readonly slug: SpecSlug;
  /** Folder inside the repository: `docs/specs/<slug>`. */
  readonly folder: string;
  readonly title: string;
  /** Everything after the frontmatter of SPEC.md, byte for byte, without `## History`. */
  readonly body: string;
  readonly state: SpecState;
  /** Slugs of Specs that come first. */
  readonly dependsOn: readonly SpecSlug[];
  readonly value?: number;
  /** Ordered by number. */
  readonly issues: readonly Issue[];
  /** Files of the folder that are not Issues, each with the reason. */
  readonly ignored: readonly { readonly path: string; readonly reason: string }[];
}

/** Folder of all Specs inside a repository. */
export const specsFolder = 'docs/specs';
