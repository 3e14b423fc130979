import { type Client, toStream } from "./client.js";

/** A request to a port. */
export interface PortRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal?: AbortSignal;
}

/** A port of a sandbox. */
export class Port {
  readonly #client: Client;
  /** Where requests go, through a gateway that has a URL; empty through a socket. */
  readonly url: string;
  /** What every request has: the name of the port, and the token of the sandbox. */
  readonly headers: Readonly<Record<string, string>>;

  /** @internal */
  constructor(client: Client, number: number, box: string, token: string) {
    const { url, host } = client.portAddress(number, box);
    this.#client = client;
    this.url = url;
    this.headers = { Host: host, "Atoll-Port-Token": token };
  }

  /** Send a request to the port, through the gateway's own address or its socket, so that no name has to be resolved. */
  async fetch(path = "/", request: PortRequest = {}): Promise<Response> {
    const content = typeof request.body === "string" ? Buffer.from(request.body) : request.body;
    const headers = { ...request.headers, ...this.headers };
    const answer = await this.#client.exchange(request.method ?? "GET", path, { headers, accept: "*/*", signal: request.signal, anonymous: true, ...(content && { content }) });
    const status = answer.statusCode ?? 0;
    const pairs = Object.entries(answer.headersDistinct).flatMap(([name, values]) => (values ?? []).map((value): [string, string] => [name, value]));
    const empty = [204, 205, 304].includes(status);
    if (empty) answer.resume();
    return new Response(empty ? null : toStream(answer), { status, headers: pairs });
  }
}
