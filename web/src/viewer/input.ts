import type { ViewInput } from "../api-types";
import type { Picture } from "./picture";

// Keys that write no text; all others are sent as the text that they write.
const named = new Set(["Backspace", "Tab", "Enter", "Escape", "PageUp", "PageDown", "End", "Home", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown", "Delete"]);
const buttons = ["left", "middle", "right"] as const;
const longestText = 1000;

/** listen sends what a person does on the canvas of a page, until the function that it returns is called. */
export function listen(picture: Picture, send: (input: ViewInput) => void): () => void {
  const canvas = picture.canvas;
  const abort = new AbortController();
  const on = <K extends keyof HTMLElementEventMap>(type: K, handler: (event: HTMLElementEventMap[K]) => void): void =>
    canvas.addEventListener(type, handler, { signal: abort.signal, passive: false });
  const mouse = (event: "down" | "up" | "move", from: MouseEvent, pressed: number): void => {
    const button = buttons[pressed];
    send({ type: "mouse", event, ...picture.place(from), ...(button ? { button } : {}), clicks: event === "move" ? 0 : Math.min(Math.max(from.detail, 1), 3) });
  };
  on("mousedown", (event) => { event.preventDefault(); canvas.focus(); mouse("down", event, event.button); });
  on("mouseup", (event) => { event.preventDefault(); mouse("up", event, event.button); });
  on("contextmenu", (event) => event.preventDefault());
  let moved: MouseEvent | undefined;
  on("mousemove", (event) => {
    if (moved === undefined) requestAnimationFrame(() => {
      if (moved !== undefined) mouse("move", moved, moved.buttons & 1 ? 0 : -1);
      moved = undefined;
    });
    moved = event;
  });
  on("wheel", (event) => { event.preventDefault(); send({ type: "wheel", ...picture.place(event), dx: event.deltaX, dy: event.deltaY }); });
  on("keydown", (event) => press(event, "down", send));
  on("keyup", (event) => press(event, "up", send));
  on("paste", (event) => {
    event.preventDefault();
    write(event.clipboardData?.getData("text/plain") ?? "", send);
  });
  return () => abort.abort();
}

function press(event: KeyboardEvent, what: "down" | "up", send: (input: ViewInput) => void): void {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.key === "Escape" && event.shiftKey) return; // of this web browser: paste, leave the canvas
  if (named.has(event.key)) send({ type: "key", event: what, key: event.key, code: event.code });
  else if ([...event.key].length !== 1) return;
  else if (what === "down") write(event.key, send);
  event.preventDefault();
  event.stopPropagation();
}

function write(text: string, send: (input: ViewInput) => void): void {
  const letters = [...text.replaceAll("\0", "")];
  for (let at = 0; at < letters.length; at += longestText) send({ type: "text", text: letters.slice(at, at + longestText).join("") });
}
