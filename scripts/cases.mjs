/** `npm run cases`: the situations of test/cases. `-- --full` adds the long ones; other arguments go to vitest. */
import { spawnSync } from 'node:child_process';

const full = process.argv.includes('--full');
const rest = process.argv.slice(2).filter((argument) => argument !== '--full');
const { status } = spawnSync('npx', ['--no-install', 'vitest', 'run', 'test/cases', ...rest], {
  stdio: 'inherit',
  env: full ? { ...process.env, GIRO_CASES_FULL: '1' } : process.env,
});
process.exitCode = status ?? 1;
