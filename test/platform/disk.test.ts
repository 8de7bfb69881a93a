import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { bytesOnDisk, formatBytes } from '../../src/platform/disk.js';
import { temporaryFolder } from '../rig/temp.js';

describe('bytes on disk', () => {
  test('are those of every file below, without following links; nothing there is nothing', async () => {
    const { path } = await temporaryFolder();
    await mkdir(join(path, 'a/b'), { recursive: true });
    await mkdir(join(path, 'outside'));
    const before = await bytesOnDisk(join(path, 'a'));
    await writeFile(join(path, 'a/b/big'), Buffer.alloc(400_000));
    await writeFile(join(path, 'outside/big'), Buffer.alloc(800_000));
    await symlink(join(path, 'outside'), join(path, 'a/link'));
    const taken = (await bytesOnDisk(join(path, 'a'))) - before;
    expect(taken).toBeGreaterThanOrEqual(400_000);
    expect(taken).toBeLessThan(500_000);
    expect(await bytesOnDisk(join(path, 'a/b/big'))).toBeGreaterThanOrEqual(400_000);
    expect(await bytesOnDisk(join(path, 'absent'))).toBe(0);
  });

  test.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1.0 KB'],
    [9_940, '9.9 KB'],
    [9_960, '10 KB'],
    [999_600, '1.0 MB'],
    [412_000_000, '412 MB'],
    [1_234_000_000, '1.2 GB'],
  ])('%i is shown as %s', (bytes, shown) => {
    expect(formatBytes(bytes)).toBe(shown);
  });
});
