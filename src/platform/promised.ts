/** Work that is done at once, for callers that wait for a promise. */

/** Does it now; what it throws comes as a rejection. */
export function promised<T>(work: () => T): Promise<T> {
  return new Promise((resolve) => {
    resolve(work());
  });
}
