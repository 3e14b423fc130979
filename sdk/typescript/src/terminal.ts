import type { ExecResult, TerminalSize } from "./api.js";
import { AtollError } from "./errors.js";
import { type Result, resultOf } from "./process.js";
import type { WebSocketConnection } from "./websocket.js";

const chunk = 32 << 10; // bytes of a message; the gateway takes 64 KiB

/** The terminal of a process. To close it ends nothing: Process.terminal({offset}) goes on. */
export class Terminal implements AsyncDisposable {
  readonly #socket: WebSocketConnection;
  #result: Result | undefined;
  #offset: number;

  /** @internal */
  constructor(socket: WebSocketConnection, offset: number) {
    this.#socket = socket;
    this.#offset = offset;
  }

  /** Bytes that it showed so far: where another goes on. */
  get offset(): number {
    return this.#offset;
  }

  /** How the process ended, once output has. */
  get result(): Result | undefined {
    return this.#result;
  }

  /** Yield what it shows until the process ends or it is closed. The process waits for a reader that is slow. */
  async *output(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const message = await this.#socket.receive();
      if (!message) {
        if (this.#result) return;
        throw new AtollError({ code: "terminal_closed", detail: "the terminal was closed before the process ended" });
      }
      if (message.text) {
        this.#take(JSON.parse(message.data.toString("utf8")));
      } else {
        this.#offset += message.data.length;
        yield message.data;
      }
    }
  }

  #take(event: { type: string; bytes?: number; result?: ExecResult }): void {
    if (event.type === "lost") this.#offset += event.bytes ?? 0;
    if (event.type === "ended" && event.result) this.#result = resultOf(event.result);
  }

  /** Type. */
  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    for (let at = 0; at < bytes.length; at += chunk) await this.#socket.send(bytes.subarray(at, at + chunk));
  }

  /** Set its size. */
  async resize(size: TerminalSize): Promise<void> {
    await this.#socket.send(JSON.stringify({ resize: size }));
  }

  /** Leave it. The process goes on. */
  close(): Promise<void> {
    return this.#socket.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
