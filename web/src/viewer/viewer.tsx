import { useEffect, useRef, useState } from "preact/hooks";
import type { ViewEvent, ViewInput } from "../api-types";
import { printable } from "../parts/format";
import { listen } from "./input";
import { Picture } from "./picture";
import { View, type Kind } from "./view";
import type { Screen } from "./window";
import "./viewer.css";

interface State {
  driver: string;
  control: boolean;
  url: string;
  title: string;
}

const drivers: Record<string, string> = { agent: "The agent drives", you: "You drive; the agent waits", person: "Another person drives" };

/** Viewer shows a browser at a WebSocket, and lets a person take it over. */
export function Viewer({ address, kind, name, onEnd }: { address: string; kind: Kind; name: string; onEnd: (opened: boolean) => void }) {
  const view = useRef<View>(undefined);
  const [state, setState] = useState<State>();
  const [refused, setRefused] = useState("");
  const drives = state?.driver === "you";
  const onEvent = (event: ViewEvent): void => {
    if (event.type === "state") setState({ driver: event.driver ?? "agent", control: event.control ?? false, url: event.url ?? "", title: event.title ?? "" });
    else if (event.type !== "frame") setRefused(event.type === "refused" ? event.detail ?? "That was refused." : "");
    if (event.type === "taken" || event.type === "released") setState((old) => old && { ...old, driver: event.type === "taken" ? "you" : "agent" });
  };
  const ask = (type: "take" | "release"): void => view.current?.send({ type });
  const Surface = kind === "vnc" ? WindowSurface : PageSurface;
  return (
    <section class="viewer" aria-label={`Browser ${name}`}>
      <header>
        <span class={`state ${drives ? "live" : state?.driver === "person" ? "wait" : "idle"}`} role="status"><i aria-hidden="true" />{state ? drivers[state.driver] ?? "" : "Connecting…"}</span>
        <span class="grow where" title={printable(state?.title ?? "", 300)}>{state?.url ? <code>{printable(state.url, 300)}</code> : null} <span class="faint">{printable(state?.title ?? "", 120)}</span></span>
        {state?.control && !drives && <button type="button" class="primary" disabled={state.driver === "person"} onClick={() => ask("take")}>Take over</button>}
        {drives && <button type="button" class="primary" onClick={() => ask("release")}>Give back</button>}
      </header>
      {refused && <p class="stale" role="alert">{printable(refused, 300)}</p>}
      <Surface address={address} drives={drives} view={view} onEvent={onEvent} onEnd={onEnd} />
      {drives && <p class="faint">What you type and click goes to the browser. <kbd>Shift Esc</kbd> leaves it with the keyboard.</p>}
    </section>
  );
}

interface SurfaceProps {
  address: string;
  drives: boolean;
  view: { current: View | undefined };
  onEvent: (event: ViewEvent) => void;
  onEnd: (opened: boolean) => void;
}

/** PageSurface shows the page of a browser as pictures. */
function PageSurface({ address, drives, view, onEvent, onEnd }: SurfaceProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useRef<Picture>(undefined);
  useEffect(() => {
    const shown = (picture.current = new Picture(canvas.current!));
    const open = (view.current = new View(address, {
      onEvent: (event) => {
        if (event.type === "frame") [shown.width, shown.height] = [event.width ?? 0, event.height ?? 0];
        onEvent(event);
      },
      onBytes: (bytes) => shown.draw(bytes),
      onClose: onEnd,
    }));
    return () => open.close();
  }, [address]);
  useEffect(() => {
    if (!drives) return undefined;
    canvas.current?.focus();
    return listen(picture.current!, (input: ViewInput) => view.current?.send(input));
  }, [drives]);
  return <canvas ref={canvas} class={drives ? "driven" : ""} tabIndex={drives ? 0 : -1} role="img" aria-label="The page" width={1280} height={800} onKeyDown={leave} />;
}

/** WindowSurface shows the window of a browser by noVNC, which is loaded when it is first needed. */
function WindowSurface({ address, drives, view, onEvent, onEnd }: SurfaceProps) {
  const element = useRef<HTMLDivElement>(null);
  const screen = useRef<Screen>(undefined);
  useEffect(() => {
    let over = false;
    void import("./window").then(({ Screen }) => {
      if (over) return;
      const early: ArrayBuffer[] = [];
      const open = (view.current = new View(address, {
        onEvent,
        onBytes: (bytes) => { if (screen.current) screen.current.receive(bytes); else early.push(bytes); },
        onClose: onEnd,
      }));
      screen.current = new Screen(open, element.current!);
      for (const bytes of early) screen.current.receive(bytes);
    }, () => onEnd(false));
    return () => {
      over = true;
      screen.current?.close();
      view.current?.close();
    };
  }, [address]);
  useEffect(() => screen.current?.drive(drives), [drives]);
  useEffect(() => {
    if (!drives) return undefined;
    const paste = (event: ClipboardEvent): void => screen.current?.paste(event.clipboardData?.getData("text/plain") ?? "");
    addEventListener("paste", paste);
    return () => removeEventListener("paste", paste);
  }, [drives]);
  return <div ref={element} class={`window ${drives ? "driven" : ""}`} onKeyDownCapture={leave} />;
}

/** leave moves the focus from what is driven to the button that gives it back. */
function leave(event: KeyboardEvent): void {
  if (event.key !== "Escape" || !event.shiftKey) return;
  event.preventDefault();
  event.stopPropagation();
  (event.currentTarget as HTMLElement).closest(".viewer")?.querySelector<HTMLElement>("header button")?.focus();
}
