import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SharedMap } from '../src/shared-map.js';

test('holds what a plain map would hold after the same changes, and no change shows in an older one', () => {
  const key = fc.integer({ min: 0, max: 99 });
  const entries = fc.array(fc.tuple(key, fc.nat()), { maxLength: 120 });
  fc.assert(
    fc.property(entries, fc.array(fc.tuple(key, fc.nat()), { maxLength: 20 }), (start, changes) => {
      const plain = new Map(start);
      const first = SharedMap.of(start);
      let map = first;
      for (const [changed, value] of changes) {
        const before = map;
        map = map.with(changed, value);
        if (plain.has(changed)) plain.set(changed, value);
        else expect(map).toBe(before);
      }
      expect([...map]).toEqual([...plain]);
      expect([...map.entries()]).toEqual([...plain.entries()]);
      expect([...map.keys()]).toEqual([...plain.keys()]);
      expect([...map.values()]).toEqual([...plain.values()]);
      expect(map.size).toBe(plain.size);
      for (let looked = 0; looked < 100; looked += 1) {
        expect(map.get(looked)).toBe(plain.get(looked));
        expect(map.has(looked)).toBe(plain.has(looked));
      }
      const visited: unknown[] = [];
      map.forEach((value, at, self) => visited.push([at, value, self === map]));
      expect(visited).toEqual([...plain].map(([at, value]) => [at, value, true]));
      expect([...first]).toEqual([...new Map(start)]);
    }),
  );
});

test('shares what did not change', () => {
  const values = Array.from({ length: 1000 }, (_, at): [number, object] => [at, { at }]);
  const map = SharedMap.of(values);
  const changed = map.with(500, {});
  expect(values.filter(([at, value]) => changed.get(at) !== value).map(([at]) => at)).toEqual([500]);
});
