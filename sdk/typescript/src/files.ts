import type { FileChange, FileEntry, FileInfo, Files as FilePage, FileTotals } from "./api.js";
import { Bytes } from "./bytes.js";
import { chunksOf, type Client, pathOf } from "./client.js";
import { NotFoundError } from "./errors.js";
import type { ServerEvent } from "./events.js";
import { pack, unpack } from "./tar.js";

/** The changes in a directory, until it is closed. */
export class Watch implements AsyncIterable<FileChange>, AsyncDisposable {
  readonly #events: AsyncGenerator<ServerEvent>;

  /** @internal */
  constructor(events: AsyncGenerator<ServerEvent>) {
    this.#events = events;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FileChange> {
    for await (const { name, data } of this.#events) if (name === "change") yield data as FileChange;
  }

  /** End it. */
  async close(): Promise<void> {
    await this.#events.return(undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Reads and writes files. Paths are absolute or relative to the working directory; links are not followed. */
export class Files {
  readonly #client: Client;
  readonly #box: string;

  /** @internal */
  constructor(client: Client, box: string) {
    this.#client = client;
    this.#box = box;
  }

  #at(...parts: string[]): string {
    return pathOf(this.#box, "files", ...parts);
  }

  /** Return the content of a file. */
  async read(path: string): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for await (const part of this.readChunks(path)) parts.push(part);
    return Buffer.concat(parts);
  }

  /** Return the content of a file as text in UTF-8. */
  async readText(path: string): Promise<string> {
    return new TextDecoder().decode(await this.read(path));
  }

  /** Yield the content of a file, from an offset on, as it comes. */
  async *readChunks(path: string, options: { offset?: number; signal?: AbortSignal } = {}): AsyncGenerator<Uint8Array> {
    const headers: Record<string, string> = options.offset ? { Range: `bytes=${options.offset}-` } : {};
    yield* chunksOf(await this.#client.send("GET", this.#at(), { query: { path }, accept: "*/*", headers, signal: options.signal }));
  }

  /** Write a file as a whole. Missing directories are made. With exclusive one that exists is refused. */
  async write(path: string, content: string | Uint8Array | AsyncIterable<Uint8Array>, options: { mode?: number; exclusive?: boolean } = {}): Promise<FileInfo> {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    return this.#client.call("PUT", this.#at(), { query: { path, ...options }, content: bytes });
  }

  /** Return what is in a directory, sorted by name. */
  async list(path = "."): Promise<FileEntry[]> {
    const found: FileEntry[] = [];
    for (;;) {
      const page = await this.#client.call<FilePage>("GET", this.#at("list"), { query: { path, after: found.at(-1)?.name } });
      found.push(...page.files);
      if (!page.more) return found;
    }
  }

  /** Describe a file. */
  async stat(path: string): Promise<FileInfo> {
    return this.#client.call("GET", this.#at("stat"), { query: { path } });
  }

  /** Tell whether there is a file. */
  async exists(path: string): Promise<boolean> {
    try {
      await this.stat(path);
      return true;
    } catch (err) {
      if (err instanceof NotFoundError && err.code === "file_not_found") return false;
      throw err;
    }
  }

  /** Move a file or a directory. */
  async move(from: string, to: string, options: { exclusive?: boolean } = {}): Promise<FileInfo> {
    return this.#client.call("POST", this.#at("move"), { body: { from, to, exclusive: options.exclusive ?? false } });
  }

  /** Make a directory, with those above it. */
  async mkdir(path: string): Promise<FileInfo> {
    return this.#client.call("POST", this.#at("mkdir"), { body: { path } });
  }

  /** Remove a file, or with recursive a directory with all that is in it. */
  async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    await this.#client.call("DELETE", this.#at(), { query: { path, ...options } });
  }

  /** Follow the changes in a directory: those that happen after this has returned are seen. */
  async watch(path = ".", options: { recursive?: boolean; signal?: AbortSignal } = {}): Promise<Watch> {
    const events = this.#client.events("GET", this.#at("watch"), { query: { path, recursive: options.recursive }, signal: options.signal });
    await events.next();
    return new Watch(events);
  }

  /** Send a directory of this machine, with what is below it. Links are left out. */
  async upload(from: string, to = "."): Promise<FileTotals> {
    return this.#client.call("PUT", this.#at("archive"), { query: { path: to }, content: pack(from) });
  }

  /** Copy a file or directory into a directory of this machine. */
  async download(from: string, to: string): Promise<void> {
    const bytes = new Bytes(chunksOf(await this.#client.send("GET", this.#at("archive"), { query: { path: from }, accept: "*/*" })));
    try {
      await unpack(bytes, to);
    } finally {
      await bytes.close();
    }
  }
}
