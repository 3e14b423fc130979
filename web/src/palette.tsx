import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, may } from "./api";
import type { Runs, Sandboxes, Sessions } from "./api-types";
import { printable } from "./parts/format";
import type { Place } from "./places";
import { go, link } from "./router";

interface Entry {
  title: string;
  kind: string;
  to: string;
  key: string;
}

/** Palette goes to a page, starts something, or finds runs, sandboxes and sessions by their ids and words. */
export function Palette({ places, onClose }: { places: Place[]; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = useFound(text.trim());
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const own: Entry[] = places.map((place) => ({ title: place.title, kind: "page", to: link(place.page), key: `g ${place.key}` }));
  if (may("run")) own.push({ title: "Start a run", kind: "action", to: link("runs", "", { start: "1" }), key: "" });
  if (may("admin")) own.push({ title: "Verify the audit log", kind: "action", to: link("audit"), key: "" });
  const entries = [...own.filter((entry) => entry.title.toLowerCase().includes(text.trim().toLowerCase())), ...found];
  const choose = (to: string | undefined): void => {
    if (to === undefined) return;
    go(to);
    dialog.current?.close();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setAt((n) => Math.min(entries.length - 1, n + 1));
    else if (event.key === "ArrowUp") setAt((n) => Math.max(0, n - 1));
    else if (event.key === "Enter") choose(entries[at]?.to);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Go to" onClose={onClose} onKeyDown={onKey}>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="palette-entries" aria-activedescendant={entries[at] ? `palette-${at}` : undefined} aria-label="Page, run, sandbox or session" placeholder="Page, or an id or word of a run, a sandbox, a session" autofocus spellcheck={false} value={text} onInput={(event) => { setText(event.currentTarget.value); setAt(0); }} />
      <ul id="palette-entries" role="listbox" aria-label="Found">
        {entries.slice(0, 30).map((entry, i) => (
          <li key={`${entry.kind} ${entry.to}`} id={`palette-${i}`} role="option" aria-selected={i === at} onClick={() => choose(entry.to)}><span class="grow">{entry.title}</span>{entry.key === "" ? <span class="faint">{entry.kind}</span> : <kbd>{entry.key}</kbd>}</li>
        ))}
      </ul>
    </dialog>
  );
}

/** useFound asks the gateway for what a text may mean, once a person stops typing. */
function useFound(text: string): Entry[] {
  const [found, setFound] = useState<Entry[]>([]);
  useEffect(() => {
    if (text.length < 3) return setFound([]);
    const abort = new AbortController();
    const timer = setTimeout(() => void find(text, abort.signal).then(setFound, () => undefined), 150);
    return () => { abort.abort(); clearTimeout(timer); };
  }, [text]);
  return text.length < 3 ? [] : found;
}

async function find(text: string, abort: AbortSignal): Promise<Entry[]> {
  const q = encodeURIComponent(text.slice(0, 200));
  const none = (): undefined => undefined;
  const [runs, sessions, sandboxes] = await Promise.all([
    call<Runs>("GET", `/api/v1/ai/runs?limit=8&fields=summary&q=${q}`, undefined, abort).catch(none),
    call<Sessions>("GET", `/api/v1/sessions?limit=8&search=${q}`, undefined, abort).catch(none),
    call<Sandboxes>("GET", "/api/v1/sandboxes?limit=1000", undefined, abort).catch(none),
  ]);
  const boxes = sandboxes?.sandboxes.filter((box) => `${box.containerName} ${box.id ?? ""}`.toLowerCase().includes(text.toLowerCase())).slice(0, 8) ?? [];
  return [
    ...(runs?.runs.map((run) => ({ title: printable(run.task || run.id, 80), kind: "run", to: link("runs", run.id), key: "" })) ?? []),
    ...(sessions?.sessions.map((session) => ({ title: printable(session.label || session.key, 80), kind: "session", to: link("sessions", session.key), key: "" })) ?? []),
    ...boxes.map((box) => ({ title: box.containerName, kind: "sandbox", to: link("sandboxes", box.id ?? box.containerName), key: "" })),
  ];
}
