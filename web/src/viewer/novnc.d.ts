declare module "@novnc/novnc" {
  /** RFB is a client of VNC, as far as it is used here. */
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, channel: object, options?: { shared?: boolean });
    viewOnly: boolean;
    scaleViewport: boolean;
    background: string;
    focus(): void;
    disconnect(): void;
    clipboardPasteFrom(text: string): void;
  }
}

declare module "*.css";
