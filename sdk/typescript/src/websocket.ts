import { createHash, randomBytes } from "node:crypto";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { Bytes } from "./bytes.js";
import { AtollError, UnreachableError } from "./errors.js";

const maxMessage = 16 << 20; // bytes of a message of the gateway
const code = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** handshake are the headers of a request for a WebSocket, and what its answer must have. */
export function handshake(): { headers: Record<string, string>; accept: string } {
  const key = randomBytes(16).toString("base64");
  const accept = createHash("sha1").update(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  return { headers: { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key }, accept };
}

/** openWebSocket sends a request with the headers of a handshake. An answer that is none goes to refused. */
export function openWebSocket(request: ClientRequest, accept: string, refused: (answer: IncomingMessage) => Promise<Error>): Promise<WebSocketConnection> {
  return new Promise((resolve, reject) => {
    request.once("error", (err) => reject(new UnreachableError(`the gateway does not answer: ${err.message}`, "is it running?", err)));
    request.once("response", (answer) => void refused(answer).then(reject, reject));
    request.once("upgrade", (answer, socket, head) => {
      if (head.length > 0) socket.unshift(head);
      if (answer.headers["sec-websocket-accept"] === accept) return resolve(new WebSocketConnection(socket));
      socket.destroy();
      reject(new AtollError({ code: "not_a_websocket", detail: "the gateway's answer is no WebSocket" }));
    });
    request.end();
  });
}

/** A message. */
export interface Message {
  text: boolean;
  data: Buffer;
}

/** The client's end of a WebSocket (RFC 6455), without extensions. */
export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #bytes: Bytes;

  constructor(socket: Duplex) {
    this.#socket = socket;
    this.#bytes = new Bytes(socket as AsyncIterable<Uint8Array>);
    socket.on("error", () => undefined); // who reads or writes gets it too
  }

  /** Return the next message; none when the other end has closed. What is not asked for is not read. */
  async receive(): Promise<Message | undefined> {
    const parts: Buffer[] = [];
    let text = false;
    for (let size = 0; ; ) {
      const frame = await this.#frame(maxMessage - size);
      if (frame.code === code.close) return void (await this.close());
      if (frame.code === code.ping) await this.#send(code.pong, frame.data);
      if (frame.code >= code.close) continue;
      if ((frame.code === code.continuation) !== parts.length > 0) throw broken("a message begins within another");
      if (parts.length === 0) text = frame.code === code.text;
      size += frame.data.length;
      parts.push(frame.data);
      if (frame.last) return { text, data: Buffer.concat(parts) };
    }
  }

  async #frame(most: number): Promise<{ last: boolean; code: number; data: Buffer }> {
    const [first = 0, second = 0] = await this.#bytes.exactly(2);
    if ((first & 0x70) !== 0 || (second & 0x80) !== 0) throw broken("a frame is wrong");
    let size = second;
    if (second === 126) size = (await this.#bytes.exactly(2)).readUInt16BE();
    if (second === 127) size = Number((await this.#bytes.exactly(8)).readBigUInt64BE());
    if (size > most) throw broken("a message is too long");
    return { last: (first & 0x80) !== 0, code: first & 0x0f, data: await this.#bytes.exactly(size) };
  }

  /** Send a message, and return when it is on its way. */
  send(data: string | Uint8Array): Promise<void> {
    return typeof data === "string" ? this.#send(code.text, Buffer.from(data)) : this.#send(code.binary, data);
  }

  #send(opcode: number, data: Uint8Array): Promise<void> {
    const mask = randomBytes(4);
    const size = data.length < 126 ? [0x80 | data.length] : data.length < 1 << 16 ? [0x80 | 126, data.length >> 8, data.length & 0xff] : undefined;
    if (!size) throw new RangeError("a message of a client is at most 65,535 bytes");
    const masked = Buffer.from(data);
    for (let i = 0; i < masked.length; i++) masked[i]! ^= mask[i & 3]!;
    const frame = Buffer.concat([Buffer.from([0x80 | opcode, ...size]), mask, masked]);
    return new Promise((resolve, reject) => {
      this.#socket.write(frame, (err) => (err ? reject(new UnreachableError(`the connection to the gateway broke: ${err.message}`, "", err)) : resolve()));
    });
  }

  /** Close it. */
  async close(): Promise<void> {
    if (!this.#socket.destroyed) await this.#send(code.close, Buffer.from([1000 >> 8, 1000 & 0xff])).catch(() => undefined);
    this.#socket.destroy();
  }
}

function broken(why: string): AtollError {
  return new AtollError({ code: "bad_websocket", detail: `what the gateway sends is refused: ${why}` });
}
