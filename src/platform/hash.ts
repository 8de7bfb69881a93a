/** Content hashes of files that may be too large for memory. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

/** Read piece by piece into the same bytes: a gate may print a gigabyte. */
const pieceBytes = 256 * 1024;

/** Hashes a file with SHA-256, in hexadecimal; null when it cannot be read. */
export async function hashFile(path: string): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    const file = await open(path, 'r');
    try {
      const piece = Buffer.allocUnsafe(pieceBytes);
      for (;;) {
        const { bytesRead } = await file.read(piece, 0, pieceBytes, null);
        if (bytesRead === 0) return hash.digest('hex');
        hash.update(piece.subarray(0, bytesRead));
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null;
    throw error;
  }
}
