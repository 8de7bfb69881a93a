import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { anchorsOf, documents, proseOf, readText, root } from './markdown.js';

/** What a document links to inside the repository. */
function linksOf(markdown: string): readonly string[] {
  const prose = proseOf(markdown).replace(/`[^`\n]*`/g, '');
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return links.filter((target) => !/^[a-z]+:/.test(target));
}

function isBroken(document: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? document : relative(root, join(root, dirname(document), path));
  if (target.startsWith('..') || !existsSync(join(root, target))) return true;
  return anchor !== undefined && !anchorsOf(readText(target)).has(anchor);
}

test.each(documents)('every link and every anchor in %s leads somewhere', (document) => {
  const broken = linksOf(readText(document)).filter((link) => isBroken(document, link));
  expect(broken).toEqual([]);
});

test('a link that leads nowhere is found, in each way it can', () => {
  expect(isBroken('README.md', 'docs/nothing.md')).toBe(true);
  expect(isBroken('README.md', '#nothing')).toBe(true);
  expect(isBroken('README.md', 'docs/gates.md#nothing')).toBe(true);
  expect(isBroken('docs/gates.md', '../../outside.md')).toBe(true);
  expect(isBroken('docs/gates.md', '../README.md#safety')).toBe(false);
});

test('every document can be found from the README', () => {
  const found = new Set<string>();
  const visit = (document: string): void => {
    if (found.has(document)) return;
    found.add(document);
    for (const link of linksOf(readText(document))) {
      const [path = ''] = link.split('#');
      const target = relative(root, join(root, dirname(document), path));
      if (path.endsWith('.md') && existsSync(join(root, target))) visit(target);
      // A folder is found with what is in it.
      if (path.endsWith('/')) documents.filter((one) => one.startsWith(`${target}/`)).forEach(visit);
    }
  };
  visit('README.md');
  expect(documents.filter((document) => !found.has(document))).toEqual([]);
});

test('every page that the design and the source call by number is there', () => {
  const design = readText('docs/design.md');
  const sections = [...design.matchAll(/^## (\d+)\. /gm)].map(([, number]) => Number(number));
  expect(sections).toEqual(Array.from({ length: 13 }, (_, index) => index + 1));
  const laws = [...design.matchAll(/^\*\*L(\d+)\. /gm)].map(([, number]) => Number(number));
  expect(laws).toEqual(Array.from({ length: 11 }, (_, index) => index + 1));
});

test('decisions have numbers of their own, and say what was decided and what follows', () => {
  const decisions = documents.filter((path) => path.startsWith('docs/decisions/'));
  const numbers = decisions.map((path) => /\/(\d{4})-[a-z0-9-]+\.md$/.exec(path)?.[1]);
  expect(numbers).not.toContain(undefined);
  expect(new Set(numbers).size).toBe(numbers.length);
  for (const [index, path] of decisions.entries()) {
    const text = readText(path);
    expect(text).toMatch(new RegExp(`^# ${String(numbers[index])}: .+\n`));
    expect(text).toMatch(/^## Decision$/m);
    expect(text).toMatch(/^## Consequences$/m);
  }
});

test('no document names a place or a person of the machine that it was written on', () => {
  const places = /\/(?:dev\/shm|root|work)\/|localhost:\d|registry\.(?!npmjs)/;
  expect(documents.filter((document) => places.test(readText(document)))).toEqual([]);
});
