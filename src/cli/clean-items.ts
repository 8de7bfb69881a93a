/** What `giro clean` found: what could go and what stays, each with its reason; and how that is shown. */
import type { IssueId, Oid, SpecSlug } from '../issue.js';
import { formatBytes } from '../platform/disk.js';
import { printable } from '../platform/text.js';
import type { LinkedWorktree } from '../worktree/git-types.js';
import type { IgnoredPath } from '../worktree/inventory.js';

/** What was found, as `--json` shows it. */
export interface CleanItem {
  readonly kind: 'spec' | 'worktree' | 'branch' | 'checkouts' | 'salvage' | 'logs' | 'passes' | 'folder';
  /** `null`: of the repository as a whole. */
  readonly spec: SpecSlug | null;
  readonly issue: IssueId | null;
  /** Full path, or full name of the ref. */
  readonly name: string;
  /** On disk; 0 for refs. */
  readonly bytes: number;
  readonly fate: 'remove' | 'keep';
  readonly why: string;
  /** What a person can do about something that stays. */
  readonly hint?: string;
  /** What git ignores and what goes with it. */
  readonly ignored: readonly IgnoredPath[];
  /** What is put under `refs/giro/salvage/` before it goes. */
  readonly saves: readonly string[];
}

/** How something is removed. */
export type Removal =
  | {
      readonly kind: 'worktree';
      readonly linked: LinkedWorktree;
      readonly issue: IssueId;
      /** Trees whose content is safe without it. */
      readonly safe: readonly Oid[];
      /** Ignored files to save, with the tree of the rest. */
      readonly save: { readonly tree: Oid; readonly files: readonly string[] } | null;
    }
  | {
      readonly kind: 'branch';
      readonly ref: string;
      readonly oid: Oid;
      /** Whose work is saved first. */
      readonly save: IssueId | null;
    }
  | { readonly kind: 'ref'; readonly ref: string; readonly oid: Oid }
  | { readonly kind: 'folder'; readonly path: string };

/** An item and how it is removed; `null`: it stays. */
export interface Found {
  readonly item: CleanItem;
  readonly removal: Removal | null;
}

/** What the parts of an item usually are. */
type ItemFields = Pick<CleanItem, 'kind' | 'spec' | 'name' | 'why'> & Partial<CleanItem>;

const usual = { issue: null, bytes: 0, ignored: [], saves: [] } as const;

/** Something that stays. */
export function stays(fields: ItemFields): Found {
  return { item: { ...usual, ...fields, fate: 'keep' }, removal: null };
}

/** Something that can go. */
export function goes(fields: ItemFields, removal: Removal): Found {
  return { item: { ...usual, ...fields, fate: 'remove' }, removal };
}

/** Names an item, so that it is known again when it was looked for anew. */
export function keyOf({ kind, name }: Pick<CleanItem, 'kind' | 'name'>): string {
  return `${kind}\0${name}`;
}

/** The whole list for a person. */
export function listText(items: readonly CleanItem[]): string {
  const going = items.filter(({ fate }) => fate === 'remove');
  const staying = items.filter(({ fate }) => fate === 'keep');
  const parts = [
    going.length === 0 ? ['nothing can go'] : [`can go (${countOf(going)}):`, ...groupLines(going)],
    staying.length === 0 ? [] : ['', `stays (${countOf(staying)}):`, ...groupLines(staying)],
  ];
  return `${parts.flat().join('\n')}\n`;
}

/** How many, and how much of the disk. */
export function countOf(items: readonly CleanItem[]): string {
  const bytes = sumOf(items);
  return bytes === 0 ? String(items.length) : `${String(items.length)}, ${formatBytes(bytes)}`;
}

/** Bytes of items together. */
export function sumOf(items: readonly CleanItem[]): number {
  return items.reduce((sum, { bytes }) => sum + bytes, 0);
}

function groupLines(items: readonly CleanItem[]): readonly string[] {
  const specs = [...new Set(items.map(({ spec }) => spec))];
  return specs.flatMap((spec) => [
    `  ${spec ?? 'the repository'}`,
    ...items.filter((item) => item.spec === spec).flatMap(itemLines),
  ]);
}

function itemLines(item: CleanItem): readonly string[] {
  const size = item.bytes === 0 ? '' : `, ${formatBytes(item.bytes)}`;
  const issue = item.issue === null || item.kind !== 'worktree' ? '' : `${item.issue} at `;
  const head = `    ${item.kind.padEnd(9)} ${issue}${printable(shortName(item.name))}${size}: ${printable(item.why)}`;
  return [
    head,
    ...(item.ignored.length === 0 ? [] : [`              ignored in it: ${ignoredText(item.ignored)}`]),
    ...(item.saves.length === 0 ? [] : [`              saved first: ${printable(item.saves.join(', '))}`]),
    ...(item.hint === undefined ? [] : [`              ${printable(item.hint)}`]),
  ];
}

/** A ref as people type it. */
function shortName(name: string): string {
  return name.replace(/^refs\/heads\//, '').replace(/^refs\/giro\/salvage\//, '');
}

const mostNamed = 5;

function ignoredText(ignored: readonly IgnoredPath[]): string {
  const bySize = [...ignored].sort((left, right) => right.bytes - left.bytes);
  const named = bySize.slice(0, mostNamed).map(({ path, bytes }) => `${printable(path)}, ${formatBytes(bytes)}`);
  const rest = bySize.slice(mostNamed);
  const more = rest.reduce((sum, { bytes }) => sum + bytes, 0);
  return [...named, ...(rest.length === 0 ? [] : [`${String(rest.length)} more, ${formatBytes(more)}`])].join('; ');
}
