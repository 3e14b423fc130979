import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { connected, logOut, me } from "./api";
import type { Approval } from "./api-types";
import { Help } from "./help";
import { useKeys } from "./keys";
import { online, useLive } from "./live";
import { Palette } from "./palette";
import type { Place } from "./places";
import { printable } from "./parts/format";
import { link, route } from "./router";

/** Shell is what surrounds every page: the rail, the top bar and the command palette. */
export function Shell({ places, children }: { places: Place[]; children: ComponentChildren }) {
  const waits = useLive<Approval>("approvals").rows?.size ?? 0;
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  useKeys(places, () => setPalette(true), () => setHelp(true));
  const here = places.find((place) => place.page === route.value.page);
  useEffect(() => {
    document.title = `${waits > 0 ? `(${waits}) ` : ""}${here?.title ?? "Atoll"} · Atoll`;
  }, [here, waits]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the page</a>
      <nav class="rail" aria-label="Pages">
        <a class="brand" href={link("now")}><img src="/ui/icon.svg" alt="" width="20" height="20" /><span>Atoll</span></a>
        {places.map((place) => (
          <a key={place.page} href={link(place.page)} aria-current={place === here ? "page" : undefined}>
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d={place.icon} /></svg>
            <span>{place.title}</span>
            {place.page === "approvals" && waits > 0 && <b class="badge" aria-label="waiting">{waits}</b>}
          </a>
        ))}
      </nav>
      <header class="top">
        <h1>{here && route.value.id !== "" ? <><a href={link(here.page)}>{here.title}</a> / {printable(route.value.id, 40)}</> : here?.title ?? "Not found"}</h1>
        <button type="button" class="palette-open" onClick={() => setPalette(true)}>Go to… <kbd>Ctrl K</kbd></button>
        <span class={`connection ${connected.value && online.value ? "good" : "bad"}`} role="status"><i aria-hidden="true" />{!connected.value ? "not connected" : online.value ? "connected" : "not live"}</span>
        <span class="who">{me.value?.account || (me.value?.name === "socket" ? "owner" : me.value?.name)} · {me.value?.scope}</span>
        <button type="button" onClick={() => setHelp(true)} aria-label="Keys">?</button>
        <button type="button" onClick={toggleTheme} aria-label="Dark or light">◐</button>
        <button type="button" onClick={() => void logOut()}>Log out</button>
      </header>
      <main id="main" tabIndex={-1}>{children}</main>
      {help && <Help places={places} onClose={() => setHelp(false)} />}
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
