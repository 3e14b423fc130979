import type { ViewEvent, ViewInput } from "../api-types";

/** Kind is how a browser is shown: its page as pictures, or its window by VNC. */
export type Kind = "view" | "vnc";

/** Listener is told what a view says. */
export interface Listener {
  onEvent: (event: ViewEvent) => void;
  onBytes: (bytes: ArrayBuffer) => void;
  onClose: (opened: boolean) => void;
}

/** View is the connection of a viewer: texts say who drives and what is typed, bytes are pictures or VNC. */
export class View {
  readonly #socket: WebSocket;
  #opened = false;

  constructor(address: string, listener: Listener) {
    this.#socket = new WebSocket(address);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => { this.#opened = true; };
    this.#socket.onclose = () => listener.onClose(this.#opened);
    this.#socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (typeof data === "string") listener.onEvent(JSON.parse(data) as ViewEvent);
      else listener.onBytes(data);
    };
  }

  /** send sends what a person does. */
  send(input: ViewInput): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(input));
  }

  /** sendBytes sends VNC. */
  sendBytes(bytes: ArrayBufferLike | ArrayBufferView<ArrayBuffer>): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(bytes as ArrayBuffer);
  }

  close(): void {
    this.#socket.onclose = null;
    this.#socket.close();
  }
}

/** addressOf returns the WebSocket of this gateway at a path. */
export function addressOf(path: string): string {
  return `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}${path}`;
}
