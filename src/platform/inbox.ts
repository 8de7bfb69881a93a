/** What a long-lived child has said and nobody has read yet. */

type Waiting =
  | { readonly kind: 'line'; readonly resolve: (line: string | null) => void }
  | {
      readonly kind: 'bytes';
      readonly count: number;
      readonly resolve: (bytes: Buffer) => void;
      readonly reject: (error: Error) => void;
    }
  | {
      readonly kind: 'mark';
      readonly mark: Uint8Array;
      readonly resolve: (bytes: Buffer | null) => void;
    };

/** Answers reads of lines and bytes, in the order they were asked, from chunks as they come. */
export class Inbox {
  readonly #waiting: Waiting[] = [];
  readonly #tooShort: (count: number) => Error;
  #chunks: Buffer[] = [];
  #size = 0;
  /** No line end in the first so many bytes: a long line is not searched anew with each chunk. */
  #searched = 0;
  #ended = false;
  #changed: (waiting: boolean) => void = () => undefined;

  constructor(tooShort: (count: number) => Error) {
    this.#tooShort = tooShort;
  }

  onWaiting(changed: (waiting: boolean) => void): void {
    this.#changed = changed;
    changed(this.#waiting.length > 0);
  }

  line(): Promise<string | null> {
    return new Promise((resolve) => {
      this.#ask({ kind: 'line', resolve });
    });
  }

  bytes(count: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#ask({ kind: 'bytes', count, resolve, reject });
    });
  }

  before(mark: Uint8Array): Promise<Buffer | null> {
    return new Promise((resolve) => {
      this.#ask({ kind: 'mark', mark, resolve });
    });
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    this.#answer();
  }

  end(): void {
    this.#ended = true;
    this.#answer();
  }

  #ask(request: Waiting): void {
    this.#waiting.push(request);
    if (this.#waiting.length === 1) this.#answer();
    if (this.#waiting.length === 1) this.#changed(true);
  }

  #answer(): void {
    const before = this.#waiting.length;
    for (let next = this.#waiting[0]; next !== undefined && this.#tryAnswer(next); next = this.#waiting[0]) {
      this.#waiting.shift();
    }
    if (before > 0 && this.#waiting.length === 0) this.#changed(false);
  }

  #tryAnswer(request: Waiting): boolean {
    if (request.kind === 'line') return this.#tryLine(request.resolve);
    return request.kind === 'bytes' ? this.#tryBytes(request) : this.#tryMark(request);
  }

  /** A mark ends what was said so far, so only the end is looked at. */
  #tryMark({ mark, resolve }: Extract<Waiting, { kind: 'mark' }>): boolean {
    if (this.#endsWith(mark)) resolve(this.#take(this.#size).subarray(0, -mark.length));
    else if (this.#ended) resolve(null);
    else return false;
    return true;
  }

  #endsWith(mark: Uint8Array): boolean {
    if (this.#size < mark.length) return false;
    let tail = Buffer.alloc(0);
    for (let at = this.#chunks.length - 1; tail.length < mark.length && at >= 0; at--) {
      tail = Buffer.concat([this.#chunks[at] ?? tail, tail]);
    }
    return tail.subarray(-mark.length).equals(mark);
  }

  #tryLine(resolve: (line: string | null) => void): boolean {
    const end = this.#lineEnd();
    if (end !== -1) {
      resolve(this.#take(end + 1).toString('utf8', 0, end));
      return true;
    }
    if (!this.#ended) return false;
    resolve(this.#size > 0 ? this.#take(this.#size).toString('utf8') : null);
    return true;
  }

  #tryBytes({ count, resolve, reject }: Extract<Waiting, { kind: 'bytes' }>): boolean {
    if (this.#size >= count) resolve(this.#take(count));
    else if (this.#ended) reject(this.#tooShort(count));
    else return false;
    return true;
  }

  #lineEnd(): number {
    let offset = 0;
    for (const chunk of this.#chunks) {
      const found =
        offset + chunk.length <= this.#searched ? -1 : chunk.indexOf(0x0a, Math.max(0, this.#searched - offset));
      if (found !== -1) return offset + found;
      offset += chunk.length;
    }
    this.#searched = this.#size;
    return -1;
  }

  #take(count: number): Buffer {
    const all = this.#chunks.length === 1 ? (this.#chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#chunks);
    this.#chunks = count < all.length ? [all.subarray(count)] : [];
    this.#size -= count;
    this.#searched = 0;
    // A small answer that is kept must not keep the whole chunk it came in.
    return count * 2 < all.length ? Buffer.from(all.subarray(0, count)) : all.subarray(0, count);
  }
}
