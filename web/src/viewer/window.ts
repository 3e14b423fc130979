import RFB from "@novnc/novnc";
import type { View } from "./view";

/** Channel is the connection of a view as noVNC wants it: bytes alone. */
class Channel {
  binaryType = "arraybuffer";
  protocol = "";
  readyState: RTCDataChannelState = "open";
  onopen: (() => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  onerror: ((event: unknown) => void) | null = null;
  onmessage: ((event: { data: ArrayBuffer }) => void) | null = null;

  constructor(readonly view: View) {}

  send(bytes: ArrayBufferView<ArrayBuffer>): void {
    this.view.sendBytes(bytes);
  }

  close(): void {
    this.readyState = "closed";
    this.onclose?.({ code: 1000, reason: "" });
  }
}

/** Screen shows the window of a browser in an element. */
export class Screen {
  readonly #channel: Channel;
  readonly #rfb: RFB;

  constructor(view: View, element: HTMLElement) {
    this.#channel = new Channel(view);
    this.#rfb = new RFB(element, this.#channel, { shared: true });
    this.#rfb.viewOnly = true;
    this.#rfb.scaleViewport = true;
    this.#rfb.background = "transparent";
    this.#rfb.addEventListener("connect", () => { element.dataset["shown"] = "yes"; });
  }

  /** receive takes bytes of the window. */
  receive(data: ArrayBuffer): void {
    this.#channel.onmessage?.({ data });
  }

  /** drive lets a person type into the window, or only watch. */
  drive(drives: boolean): void {
    this.#rfb.viewOnly = !drives;
    if (drives) this.#rfb.focus();
  }

  /** paste gives a text to the window's clipboard. */
  paste(text: string): void {
    this.#rfb.clipboardPasteFrom(text);
  }

  close(): void {
    this.#rfb.disconnect();
  }
}
