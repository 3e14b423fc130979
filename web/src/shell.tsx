import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { connected, logOut, me } from "./api";
import type { Approvals } from "./api-types";
import { useResource } from "./resource";
import { go, link, route } from "./router";

/** Place is a page of the rail. */
export interface Place {
  page: string;
  title: string;
  key: string; // after g
  icon: string; // path of a 16 × 16 drawing
}

/** Shell is what surrounds every page: the rail, the top bar and the command palette. */
export function Shell({ places, children }: { places: Place[]; children: ComponentChildren }) {
  const waiting = useResource<Approvals>("/api/v1/approvals", 4000);
  const [palette, setPalette] = useState(false);
  useKeys(places, () => setPalette(true));
  const here = places.find((place) => place.page === route.value.page);
  useEffect(() => {
    document.title = `${here?.title ?? "Atoll"} · Atoll`;
  }, [here]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the page</a>
      <nav class="rail" aria-label="Pages">
        <a class="brand" href={link("now")}><img src="/ui/icon.svg" alt="" width="20" height="20" /><span>Atoll</span></a>
        {places.map((place) => (
          <a key={place.page} href={link(place.page)} aria-current={place === here ? "page" : undefined}>
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d={place.icon} /></svg>
            <span>{place.title}</span>
            {place.page === "approvals" && (waiting.data?.approvals.length ?? 0) > 0 && <b class="badge" aria-label="waiting">{waiting.data?.approvals.length}</b>}
          </a>
        ))}
      </nav>
      <header class="top">
        <h1>{here?.title ?? "Not found"}</h1>
        <button type="button" class="palette-open" onClick={() => setPalette(true)}>Go to… <kbd>Ctrl K</kbd></button>
        <span class={`connection ${connected.value ? "good" : "bad"}`} role="status"><i aria-hidden="true" />{connected.value ? "connected" : "not connected"}</span>
        <span class="who">{me.value?.account || (me.value?.name === "socket" ? "owner" : me.value?.name)} · {me.value?.scope}</span>
        <button type="button" onClick={toggleTheme} aria-label="Dark or light">◐</button>
        <button type="button" onClick={() => void logOut()}>Log out</button>
      </header>
      <main id="main" tabIndex={-1}>{children}</main>
      {palette && <Palette places={places} onClose={() => setPalette(false)} />}
    </>
  );
}

/** toggleTheme changes between dark and light and keeps the choice. */
function toggleTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const current = document.documentElement.dataset["theme"] ?? (dark ? "dark" : "light");
  const next = current === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  localStorage.setItem("atoll.theme", next);
}

/** useKeys lets a person go to a page with g and its key, and open the palette. */
function useKeys(places: Place[], openPalette: () => void): void {
  useEffect(() => {
    let afterG = 0;
    const onKey = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        openPalette();
        return;
      }
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog");
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "g") {
        afterG = Date.now();
      } else if (event.key === "/") {
        const filter = document.querySelector<HTMLInputElement>("main input[type=search]");
        if (filter) { event.preventDefault(); filter.focus(); }
      } else if (Date.now() - afterG < 1500) {
        const place = places.find((candidate) => candidate.key === event.key);
        if (place) { event.preventDefault(); go(link(place.page)); }
        afterG = 0;
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

/** Palette goes to a page, or to a run or a sandbox by its id. */
function Palette({ places, onClose }: { places: Place[]; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  useEffect(() => dialog.current?.showModal(), []);
  const entries = places.filter((place) => place.title.toLowerCase().includes(text.toLowerCase())).map((place) => ({ title: place.title, to: link(place.page), key: `g ${place.key}` }));
  if (text.trim().length >= 4) {
    entries.push({ title: `Run ${text.trim()}`, to: link("runs", text.trim()), key: "" }, { title: `Sandbox ${text.trim()}`, to: link("sandboxes", text.trim()), key: "" });
  }
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
      <input type="search" aria-label="Page or id" placeholder="Page, or the id of a run or a sandbox" autofocus value={text} onInput={(event) => { setText(event.currentTarget.value); setAt(0); }} />
      <ul>
        {entries.map((entry, i) => (
          <li key={entry.to}><button type="button" class={i === at ? "selected" : ""} onClick={() => choose(entry.to)}>{entry.title}<kbd>{entry.key}</kbd></button></li>
        ))}
      </ul>
    </dialog>
  );
}
