/** What `giro clean` found: what could go and what stays, each with its reason; and how that is shown. */
import { basename } from 'node:path';
import type { IssueId, Oid, SpecSlug } from '../issue.js';
import { formatBytes } from '../platform/disk.js';
import { printable } from '../platform/text.js';
import type { LinkedWorktree } from '../worktree/git-types.js';
import type { IgnoredPath } from '../worktree/ignored.js';

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
    ...alike(items.filter((item) => item.spec === spec)).flatMap(([first, ...more]) =>
      more.length < mostAlone ? [first, ...more].flatMap(itemLines) : manyLines([first, ...more]),
    ),
  ]);
}

/** From how many more on refs of which the same is to be said share a line. */
const mostAlone = 5;

type Alike = readonly [CleanItem, ...(readonly CleanItem[])];

/** Refs of which the same is to be said, in the order of the first of them; everything else alone. */
function alike(items: readonly CleanItem[]): readonly Alike[] {
  const groups = new Map<string, [CleanItem, ...CleanItem[]]>();
  for (const item of items) {
    const isRef = item.kind === 'branch' || item.kind === 'salvage';
    const key = isRef ? `${item.kind}\0${item.why}` : keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

function manyLines(items: Alike): readonly string[] {
  const [{ kind, why, hint, saves }] = items;
  const names = items.slice(0, 2).map(({ name }) => printable(shortName(name)));
  const head = `    ${kind.padEnd(9)} ${names.join(', ')} and ${String(items.length - names.length)} more: ${printable(why)}`;
  return [head, ...furtherLines({ ignored: [], saves, ...(hint === undefined ? {} : { hint }) })];
}

function itemLines(item: CleanItem): readonly string[] {
  const { kind, issue, name, bytes, why } = item;
  const size = bytes === 0 ? '' : `, ${formatBytes(bytes)}`;
  // Paths are long: a line of their own leaves room for what counts.
  const isPath = name.startsWith('/');
  const short = isPath ? basename(name) : shortName(name);
  const shown = kind === 'worktree' && issue !== null ? issue : short;
  const head = `    ${kind.padEnd(9)} ${printable(shown)}${size}: ${printable(why)}`;
  return [head, ...(isPath ? [`${indent}${printable(name)}`] : []), ...furtherLines(item)];
}

const indent = ' '.repeat(14);

function furtherLines({ ignored, saves, hint }: Pick<CleanItem, 'ignored' | 'saves' | 'hint'>): readonly string[] {
  return [
    ...(ignored.length === 0 ? [] : [`${indent}ignored in it: ${ignoredText(ignored)}`]),
    ...(saves.length === 0 ? [] : [`${indent}saved first: ${printable(saves.join(', '))}`]),
    ...(hint === undefined ? [] : [`${indent}${printable(hint)}`]),
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
