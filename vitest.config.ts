import { execFileSync } from 'node:child_process';
import { defineConfig } from 'vitest/config';

/** `*.pty.test.ts` drive the built program on a real terminal, which tmux provides. */
const ptyTests = 'test/**/*.pty.test.ts';

/** Where scripts/verify.mjs reads what really ran. */
const report = process.env['GIRO_TEST_REPORT'];

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
    exclude: hasTmux() ? [] : [ptyTests],
    globals: false,
    setupFiles: ['test/rig/seed.ts'],
    pool: 'forks',
    maxWorkers: 2,
    sequence: { shuffle: { files: false, tests: true } },
    // Rig tests start real processes on machines that may be busy.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: report === undefined ? ['default'] : ['default', ['json', { outputFile: report }]],
  },
});

/** Without tmux those tests are not run, and that is said; `.ci/run` sets the variable that makes it an error. */
function hasTmux(): boolean {
  try {
    execFileSync('tmux', ['-V'], { stdio: 'ignore' });
    return true;
  } catch (cause) {
    if (process.env['GIRO_REQUIRE_TMUX'] === '1') throw new Error('the pty tests need tmux', { cause });
    console.error(`not run: ${ptyTests} (tmux is not installed)`);
    return false;
  }
}
