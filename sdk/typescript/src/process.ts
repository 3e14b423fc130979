import type { ExecResult, Process as ProcessInfo, ProcessOutput } from "./api.js";
import { type Client, pathOf } from "./client.js";
import { Terminal } from "./terminal.js";

/** How a command ended. */
export type Result = ExecResult & {
  /** Whether it succeeded. */
  ok: boolean;
};

/** What a process wrote. */
export interface Output {
  stream: "stdout" | "stderr";
  data: Uint8Array;
  /** Bytes before it that are not kept any more. */
  lost: number;
  /** Where output({after}) goes on. */
  id: string;
}

/** A command that goes on until it ends or its sandbox does. */
export class Process {
  readonly #client: Client;
  readonly #box: string;
  readonly id: string;
  /** Inside the sandbox. */
  readonly pid: number;
  /** For people: shortened. */
  readonly command: string;

  /** @internal */
  constructor(client: Client, box: string, raw: ProcessInfo) {
    this.#client = client;
    this.#box = box;
    this.id = raw.id;
    this.pid = raw.pid;
    this.command = raw.command;
  }

  #at(...parts: string[]): string {
    return pathOf(this.#box, "processes", this.id, ...parts);
  }

  /** Tell whether it has not ended yet. */
  async running(): Promise<boolean> {
    return (await this.#client.call<ProcessInfo>("GET", this.#at())).running;
  }

  /** Return how it ended, with what is kept of its output; undefined if the time is over first. */
  async wait(options?: { timeoutSeconds?: undefined; signal?: AbortSignal }): Promise<Result>;
  async wait(options: { timeoutSeconds: number; signal?: AbortSignal }): Promise<Result | undefined>;
  async wait(options: { timeoutSeconds?: number | undefined; signal?: AbortSignal } = {}): Promise<Result | undefined> {
    const until = performance.now() + (options.timeoutSeconds ?? Infinity) * 1000;
    for (;;) {
      const left = Math.floor((until - performance.now()) / 1000);
      const raw = await this.#client.call<ProcessInfo>("GET", this.#at(), { query: { waitSeconds: Math.max(1, Math.min(60, left)) }, signal: options.signal });
      if (!raw.running && raw.result) return this.#ended(raw.result);
      if (performance.now() >= until) return undefined;
    }
  }

  async #ended(result: ExecResult): Promise<Result> {
    const kept = await this.#client.call<ProcessOutput>("GET", this.#at("output"));
    return resultOf({ ...result, stdout: textOf(kept.stdout), stderr: textOf(kept.stderr) });
  }

  /** Yield what it writes until it ends, from the beginning or after an output. It waits for a reader that is slow. */
  async *output(options: { after?: string; signal?: AbortSignal } = {}): AsyncGenerator<Output> {
    const headers: Record<string, string> = options.after ? { "Last-Event-ID": options.after } : {};
    for await (const { id, name, data } of this.#client.events("GET", this.#at("output"), { headers, signal: options.signal })) {
      if (name === "ended") return;
      if (name === "stdout" || name === "stderr") yield { stream: name, data: Buffer.from(data.data, "base64"), lost: data.lost ?? 0, id };
    }
  }

  /** Write to its standard input, and close that with end. */
  async write(data: string | Uint8Array, options: { end?: boolean } = {}): Promise<void> {
    await this.#client.call("POST", this.#at("input"), { body: { data: base64(data), end: options.end ?? false } });
  }

  /** Close its standard input. */
  async closeStdin(): Promise<void> {
    await this.#client.call("POST", this.#at("input"), { body: { end: true } });
  }

  /** Send a signal such as SIGINT, with tree to its descendants too. */
  async signal(name: string, options: { tree?: boolean } = {}): Promise<void> {
    await this.#client.call("POST", this.#at("signal"), { body: { signal: name, tree: options.tree ?? false } });
  }

  /** Show its terminal, if it was started with one, from the beginning or an offset on. */
  async terminal(options: { offset?: number } = {}): Promise<Terminal> {
    const offset = options.offset ?? 0;
    return new Terminal(await this.#client.webSocket(this.#at("terminal"), { offset }), offset);
  }

  /** End it with its descendants and forget it. */
  async kill(): Promise<void> {
    await this.#client.call("DELETE", this.#at());
  }
}

/** @internal */
export function resultOf(raw: ExecResult): Result {
  return { ...raw, ok: raw.exitCode === 0 };
}

/** @internal */
export function base64(data: string | Uint8Array): string {
  return (typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength)).toString("base64");
}

function textOf(encoded: string): string {
  return Buffer.from(encoded, "base64").toString("utf8");
}
