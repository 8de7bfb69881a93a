import { expect, test } from 'vitest';
import { frame, ui, issue } from './demo.js';
test('x', () => {
  console.log(frame({ log: ['one', 'two'] }));
  console.log(frame({ ui: ui({ selected: issue('02-api') }), unicode: false, columns: 40, rows: 12 }));
  console.log(frame({ ui: ui({ selected: issue('07-docs') }), columns: 20, rows: 12 }));
  console.log(frame({ ui: ui({ focus: 'help' }), columns: 80, rows: 24 }));
  console.log(
    frame({
      ui: ui({ selected: issue('06-audit'), focus: 'log' }),
      columns: 120,
      rows: 12,
      log: ['x'.repeat(200), ...Array.from({ length: 20 }, (_, i) => `line ${i}`)],
    }),
  );
  expect(1).toBe(1);
});
