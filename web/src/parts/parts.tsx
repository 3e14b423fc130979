import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api-types";
import { now } from "../clock";
import type { Resource } from "../resource";
import { ago, printable } from "./format";

/** Ago shows a time relative to now, and the exact one on hover and focus. */
export function Ago({ at }: { at: string | number | undefined }) {
  if (at === undefined || at === "") return <span class="faint">–</span>;
  const time = new Date(at);
  if (Number.isNaN(time.getTime()) || time.getTime() <= 0) return <span class="faint">–</span>;
  return <time dateTime={time.toISOString()} title={time.toLocaleString()}>{ago(time.getTime(), now.value)}</time>;
}

const kinds: Record<string, string> = {
  done: "good", ok: "good", running: "live", ready: "good", allowed: "good", pass: "good", passed: "good", kept: "good", pushed: "good", valid: "good", whole: "good", sandboxed: "good", writable: "good", judged: "good", taken: "good",
  failed: "bad", error: "bad", refused: "bad", denied: "bad", broken: "bad", gone: "bad", fail: "bad", blocked: "bad", conflict: "bad", "on the host": "bad",
  waiting: "wait", pending: "wait", held: "wait", queued: "wait", warning: "wait", approval: "wait",
};

/** State shows a state as a shape and a word. */
export function State({ is }: { is: string }) {
  return <span class={`state ${kinds[is] ?? "idle"}`}><i aria-hidden="true" />{printable(is, 60)}</span>;
}

/** Id shows the beginning of an id and copies all of it. The tabulator passes over those in lists. */
export function Id({ value, length = 10, inList = false }: { value: string; length?: number; inList?: boolean }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(value);
    setCopied(true);
    setTimeout(() => setCopied(false), 1200);
  };
  return (
    <button type="button" class="id" tabIndex={inList ? -1 : 0} title={`Copy ${value}`} onClick={(event) => { event.preventDefault(); event.stopPropagation(); void copy(); }}>
      {copied ? "copied" : value.length > length + 2 ? `${value.slice(0, length)}…` : value}
    </button>
  );
}

/** ProblemBox shows a problem with its hint and the id that finds it in the log. */
export function ProblemBox({ problem }: { problem: Problem }) {
  return (
    <div class="problem" role="alert">
      <strong>{problem.status === 403 ? "Not allowed" : problem.status === 404 ? "Not found" : "That did not work"}</strong>
      <p>{problem.detail ?? problem.title}</p>
      {problem.hint && <p class="hint">{problem.hint}</p>}
      {problem.requestId && <p class="faint">Request {problem.requestId}</p>}
    </div>
  );
}

/** Loaded shows what a resource has, or why it has nothing. */
export function Loaded<T>({ of, children }: { of: Resource<T>; children: (data: T) => ComponentChildren }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  if (of.data !== undefined) {
    return (
      <>
        {of.stale && of.problem && <p class="stale" role="status">Shown as it was: {of.problem.detail}</p>}
        {children(of.data)}
      </>
    );
  }
  if (of.problem) return <ProblemBox problem={of.problem} />;
  return late ? <div class="skeleton" aria-busy="true"><span class="sr">Loading</span></div> : null;
}

/** Empty says that there is nothing, and the command that makes the first. */
export function Empty({ children, command }: { children: ComponentChildren; command?: string }) {
  return <div class="empty"><p>{children}</p>{command && <code>{command}</code>}</div>;
}

/** Card is a titled part of a page. */
export function Card({ title, children, extra }: { title: string; children: ComponentChildren; extra?: ComponentChildren }) {
  return <section class="card"><header><h2>{title}</h2>{extra}</header>{children}</section>;
}

/** Confirm is a button that asks, with the object's name, before it does something. */
export function Confirm({ label, question, onYes, danger = true }: { label: string; question: string; onYes: () => void; danger?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [armed, setArmed] = useState(false);
  const open = (): void => {
    dialog.current?.showModal();
    setArmed(false);
    setTimeout(() => setArmed(true), 400);
  };
  return (
    <>
      <button type="button" class={danger ? "danger" : ""} onClick={open}>{label}</button>
      <dialog ref={dialog} aria-label={label}>
        <p>{question}</p>
        <div class="row">
          <button type="button" onClick={() => dialog.current?.close()}>Keep it</button>
          <button type="button" class={danger ? "danger" : "primary"} disabled={!armed} onClick={() => { dialog.current?.close(); onYes(); }}>{label}</button>
        </div>
      </dialog>
    </>
  );
}

/** TerminalLink opens a terminal in a sandbox, on a page of its own. */
export function TerminalLink({ box }: { box: string }) {
  return <a class="button" href={`/ui/terminal.html#${encodeURIComponent(box)}`} target="_blank" rel="noopener">Terminal</a>;
}
