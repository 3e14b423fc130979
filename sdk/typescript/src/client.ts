import * as http from "node:http";
import * as https from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Problem } from "./api.js";
import { AtollError, errorOf, UnreachableError } from "./errors.js";
import { parseEvents, type ServerEvent } from "./events.js";
import { findLocal, startPrivate } from "./local.js";
import { handshake, openWebSocket, type WebSocketConnection } from "./websocket.js";

/** Which gateway. Without url and socketPath it is that of ATOLL_URL and ATOLL_TOKEN, or this user's own. */
export interface ClientOptions {
  /** Such as http://127.0.0.1:18789. */
  url?: string;
  /** Of the gateway at url. */
  token?: string;
  /** A unix socket, in place of url. */
  socketPath?: string;
}

/** @internal */
export type Query = Record<string, undefined | string | number | boolean | readonly string[]>;
/** @internal */
export type Content = Uint8Array | AsyncIterable<Uint8Array>;

/** @internal One request to a gateway. */
export interface Request {
  query?: Query;
  body?: unknown; // sent as JSON
  content?: Content; // bytes, in place of body
  accept?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  anonymous?: boolean; // without the token
}

const retries = 2; // how often a request is sent again that cannot have been carried out, or that only looks
const maxAnswer = 64 << 20; // bytes of an answer that is no stream
const idleTime = 30_000; // milliseconds that a connection is kept; the gateway keeps it longer

/** A gateway. Programs that use one gateway as it is found need none of their own. */
export class Client {
  readonly #url: URL | undefined;
  readonly #token: string | undefined;
  readonly #agent: http.Agent;
  readonly #own: boolean;
  #socket: Promise<string> | undefined;

  constructor(options: ClientOptions = {}) {
    const url = options.url ?? (options.socketPath ? undefined : process.env["ATOLL_URL"] || undefined);
    this.#url = url === undefined ? undefined : new URL(url);
    if (this.#url && (!/^https?:$/.test(this.#url.protocol) || this.#url.username)) throw new TypeError("the URL must be http:// or https:// and a host");
    this.#token = options.token ?? (url ? process.env["ATOLL_TOKEN"] || undefined : undefined);
    this.#own = url === undefined && options.socketPath === undefined;
    if (options.socketPath) this.#socket = Promise.resolve(options.socketPath);
    const kept = { keepAlive: true, maxFreeSockets: 8, timeout: idleTime };
    this.#agent = this.#url?.protocol === "https:" ? new https.Agent(kept) : new http.Agent(kept);
  }

  /** Close the connections. */
  close(): void {
    this.#agent.destroy();
  }

  /** @internal Send JSON and return the JSON that comes back. */
  async call<T>(method: string, path: string, request: Request = {}): Promise<T> {
    const text = await readAll(await this.send(method, path, request), maxAnswer);
    return (text.length === 0 ? undefined : JSON.parse(text.toString("utf8"))) as T;
  }

  /** @internal Yield the events of a stream. To end the iteration ends the stream. */
  async *events(method: string, path: string, request: Request = {}): AsyncGenerator<ServerEvent> {
    const response = await this.send(method, path, { ...request, accept: "text/event-stream" });
    for await (const event of parseEvents(chunksOf(response))) {
      if (event.name === "problem") throw errorOf(event.data as Problem);
      yield event;
    }
  }

  /** @internal Send a request and return the answer, which is a success. */
  async send(method: string, path: string, request: Request = {}): Promise<http.IncomingMessage> {
    const response = await this.exchange(method, path, request);
    const status = response.statusCode ?? 0;
    if (status < 300) return response;
    throw await refusal(response, status);
  }

  /** @internal Send a request and return the answer, whatever it is. */
  async exchange(method: string, path: string, request: Request = {}): Promise<http.IncomingMessage> {
    for (let attempt = 0; ; attempt++) {
      const sent = { yet: false };
      const prepared = await this.prepare(method, path, request);
      const used = this.#socket;
      try {
        return await answerOf(prepared, contentOf(request), sent);
      } catch (err) {
        if (err instanceof ContentError) throw err.cause;
        if (request.signal?.aborted) throw err;
        const again = !sent.yet || (method === "GET" && !request.content);
        if (!again || attempt === retries) throw this.#unreachable(err, sent.yet);
        if (!sent.yet && this.#own && this.#socket === used) this.#socket = startPrivate(); // a private gateway has left; one request finds the next
      }
    }
  }

  #unreachable(err: unknown, sent: boolean): UnreachableError {
    const said = err instanceof Error ? err.message : String(err);
    return sent ? new UnreachableError(`the connection to the gateway broke: ${said}`, "", err) : new UnreachableError(`the gateway does not answer: ${said}`, "is it running?", err);
  }

  /** @internal Make a request that is not sent yet. */
  async prepare(method: string, path: string, request: Request): Promise<http.ClientRequest> {
    const headers: http.OutgoingHttpHeaders = { Accept: request.accept ?? "application/json", ...request.headers };
    if (request.body !== undefined) headers["Content-Type"] = "application/json";
    else if (request.content) headers["Content-Type"] ??= "application/octet-stream";
    if (this.#token && !request.anonymous) headers["Authorization"] = `Bearer ${this.#token}`;
    const options: https.RequestOptions = { method, path: path + encode(request.query), headers, agent: this.#agent };
    if (request.signal) options.signal = request.signal;
    if (!this.#url) return http.request({ ...options, host: "localhost", socketPath: await this.#findSocket() });
    const send = this.#url.protocol === "https:" ? https.request : http.request;
    return send({ ...options, host: this.#url.hostname.replace(/^\[|\]$/g, ""), port: this.#url.port });
  }

  /** #findSocket returns the gateway's socket; what failed is tried again by the next. */
  async #findSocket(): Promise<string> {
    const found = (this.#socket ??= findLocal());
    try {
      return await found;
    } catch (err) {
      if (this.#socket === found) this.#socket = undefined;
      throw err;
    }
  }

  /** @internal Open a WebSocket. */
  async webSocket(path: string, query: Query): Promise<WebSocketConnection> {
    const { headers, accept } = handshake();
    const request = await this.prepare("GET", path, { query, headers });
    return openWebSocket(request, accept, (answer) => refusal(answer, answer.statusCode ?? 0));
  }

  /** @internal Return the URL of a port of a sandbox, and the host name that requests to it have. */
  portAddress(port: number, id: string): { url: string; host: string } {
    const name = `${port}-${id}`;
    if (!this.#url) return { url: "", host: `${name}.localhost` };
    const below = /^[\d.]+$|^\[/.test(this.#url.hostname) ? "localhost" : this.#url.hostname;
    const host = `${name}.${below}${this.#url.port ? `:${this.#url.port}` : ""}`;
    return { url: `${this.#url.protocol}//${host}`, host };
  }
}

/** ContentError is what the caller's own content threw. */
class ContentError extends Error {}

/** answerOf sends a request once it is connected, and returns the answer. */
function answerOf(request: http.ClientRequest, content: Content | undefined, sent: { yet: boolean }): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on("error", reject).once("response", resolve);
    const begin = () => {
      if (request.destroyed) return; // its error was told
      sent.yet = true;
      if (content === undefined || content instanceof Uint8Array) request.end(content);
      else void pipeline(guard(content, reject), request).catch(reject);
    };
    // A connection that was kept may be closed at the other end: a turn of the loop tells.
    request.once("socket", (socket) => (socket.connecting ? socket.once("connect", begin) : setImmediate(() => setImmediate(begin))));
  });
}

/** guard passes content on, and tells what it throws. */
async function* guard(content: AsyncIterable<Uint8Array>, failed: (err: Error) => void): AsyncGenerator<Uint8Array> {
  try {
    yield* content;
  } catch (err) {
    failed(new ContentError("", { cause: err }));
    throw err;
  }
}

function contentOf(request: Request): Content | undefined {
  return request.body === undefined ? request.content : Buffer.from(JSON.stringify(request.body));
}

async function refusal(response: http.IncomingMessage, status: number): Promise<AtollError> {
  const text = await readAll(response, 1 << 20);
  try {
    return errorOf({ ...(JSON.parse(text.toString("utf8")) as Problem), status });
  } catch {
    return errorOf({ status, code: "not_a_problem", title: response.statusMessage ?? "" });
  }
}

/** @internal chunksOf yields what a gateway answers. */
export async function* chunksOf(response: http.IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    yield* response as AsyncIterable<Uint8Array>;
  } catch (err) {
    if (err instanceof Error && err.name === "AbortError") throw err;
    throw new UnreachableError("the connection to the gateway broke", "", err);
  }
}

async function readAll(response: http.IncomingMessage, most: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunksOf(response)) {
    size += chunk.length;
    if (size > most) throw new AtollError({ code: "answer_too_long", detail: "the gateway's answer is too long" });
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}

function encode(query: Query = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== false) pairs.append(name, String(one));
  }
  const text = pairs.toString();
  return text && `?${text}`;
}

/** @internal pathOf returns the path of an operation on sandboxes. */
export function pathOf(...parts: string[]): string {
  return "/api/v1/sandboxes" + parts.map((part) => "/" + encodeURIComponent(part)).join("");
}

/** @internal toStream makes a stream of an answer for the web's Response. */
export function toStream(response: http.IncomingMessage): ReadableStream {
  return Readable.toWeb(response) as unknown as ReadableStream;
}

let common: Client | undefined;

/** @internal sharedClient returns the client of programs that name none. */
export function sharedClient(): Client {
  return (common ??= new Client());
}
