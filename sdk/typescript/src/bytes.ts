import { AtollError } from "./errors.js";

/** Bytes takes so many bytes at a time from what comes. */
export class Bytes {
  readonly #from: AsyncIterator<Uint8Array>;
  #have: Uint8Array = new Uint8Array();

  constructor(from: AsyncIterable<Uint8Array>) {
    this.#from = from[Symbol.asyncIterator]();
  }

  /** Return between 1 and most bytes; none at the end. */
  async some(most: number): Promise<Uint8Array> {
    while (this.#have.length === 0) {
      const { value, done } = await this.#from.next();
      if (done) return new Uint8Array();
      this.#have = value as Uint8Array;
    }
    const taken = this.#have.subarray(0, most);
    this.#have = this.#have.subarray(taken.length);
    return taken;
  }

  /** Return so many bytes. At the end it is an error. */
  async exactly(count: number): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for (let left = count; left > 0; ) {
      const part = await this.some(left);
      if (part.length === 0) throw new AtollError({ code: "stream_ended", detail: "what the gateway sends ended too early" });
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** End what comes. */
  async close(): Promise<void> {
    await this.#from.return?.();
  }
}
