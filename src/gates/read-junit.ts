/** JUnit XML, in the dialects of the usual runners. Pure; a small reader of tags, because nothing else of XML is wanted. */
import type { Evidence } from '../issue.js';
import { evidenceOf } from './reading.js';

interface Tag {
  readonly name: string;
  readonly kind: 'open' | 'close' | 'empty';
  readonly attributes: ReadonlyMap<string, string>;
}

interface Case {
  readonly name: string;
  outcome: 'passed' | 'failed' | 'skipped';
}

/** Reads a report; `null`: it is not one, or not whole. */
export function readJunit(xml: string): Evidence | null {
  const tags = tagsOf(xml.replace(/^\uFEFF/, ''));
  if (tags === null) return null;
  const cases: Case[] = [];
  const open: string[] = [];
  const suites: string[] = [];
  let current: Case | null = null;
  for (const { name, kind, attributes } of tags) {
    if (kind === 'close') {
      if (open.pop() !== name) return null;
      if (name === 'testsuite') suites.pop();
      if (name === 'testcase') current = null;
      continue;
    }
    if (open.length === 0 && name !== 'testsuites' && name !== 'testsuite') return null;
    if (name === 'testcase') {
      const found: Case = { name: identityOf(attributes, suites), outcome: 'passed' };
      cases.push(found);
      if (kind === 'open') current = found;
    } else if (current !== null) current.outcome = worse(current.outcome, name);
    if (kind === 'open') open.push(name);
    if (kind === 'open' && name === 'testsuite') suites.push(attributes.get('name') ?? '');
  }
  return open.length > 0 || tags.length === 0 ? null : counted(cases);
}

function worse(outcome: Case['outcome'], element: string): Case['outcome'] {
  if (element === 'failure' || element === 'error') return 'failed';
  return outcome === 'passed' && (element === 'skipped' || element === 'disabled') ? 'skipped' : outcome;
}

function counted(cases: readonly Case[]): Evidence {
  const named = (outcome: Case['outcome']): readonly string[] =>
    cases.filter((one) => one.outcome === outcome).map(({ name }) => name);
  const [failures, passes, skipped] = [named('failed'), named('passed'), named('skipped').length];
  const tests = failures.length + passes.length;
  return evidenceOf({ runner: 'junit', tests, failed: failures.length, skipped, failures, passes });
}

/** node:test calls every class `test`; there the suites tell where a case belongs. */
function identityOf(attributes: ReadonlyMap<string, string>, suites: readonly string[]): string {
  const where = attributes.get('classname') ?? '';
  const parts = where === '' || where === 'test' ? suites : [where];
  return [...parts, attributes.get('name') ?? ''].filter((part) => part !== '').join(' › ');
}

const tagPattern =
  /<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>|<\?[\s\S]*?\?>|<(\/?)([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|</g;

/** Every tag in order; `null` where something is neither a tag nor text. A document type is refused: it can define entities. */
function tagsOf(xml: string): readonly Tag[] | null {
  const tags: Tag[] = [];
  for (const match of xml.matchAll(tagPattern)) {
    const [whole, slash, name, attributes, end] = match;
    if (whole === '<') return null;
    if (name === undefined) continue;
    const kind = slash === '/' ? 'close' : end === '/' ? 'empty' : 'open';
    tags.push({ name, kind, attributes: attributesOf(attributes ?? '') });
  }
  return tags;
}

function attributesOf(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [, name = '', double, single] of text.matchAll(/([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)) {
    found.set(name, unescaped(double ?? single ?? ''));
  }
  return found;
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function unescaped(text: string): string {
  return text.replace(/&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-z]+);/g, (whole) => {
    const inner = whole.slice(1, -1);
    if (!inner.startsWith('#')) return entities[inner] ?? whole;
    const code = inner.startsWith('#x') ? Number.parseInt(inner.slice(2), 16) : Number(inner.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
