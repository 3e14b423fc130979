import { useEffect } from "preact/hooks";
import type { Place } from "./places";
import { go, link, route } from "./router";

/** useKeys lets a person use the pages without a mouse: g and a letter goes to a page, / filters, Escape goes back to the list. */
export function useKeys(places: Place[], openPalette: () => void, openHelp: () => void): void {
  useEffect(() => {
    let afterG = 0;
    const onKey = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openPalette();
        return;
      }
      const target = event.target instanceof HTMLElement ? event.target : null;
      if (target?.closest("input, textarea, select, dialog")) {
        if (event.key === "Escape" && !target.closest("dialog")) target.blur();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (Date.now() - afterG < 1500) {
        const place = places.find((candidate) => candidate.key === event.key);
        afterG = 0;
        if (place) { event.preventDefault(); go(link(place.page)); }
      } else if (event.key === "g") afterG = Date.now();
      else if (event.key === "/") focusFirst(event, "main input[type=search]");
      else if (event.key === "?") openHelp();
      else if (event.key === "Escape" && route.value.id !== "") go(link(route.value.page));
      else if ((event.key === "j" || event.key === "k") && !target?.closest("[role=grid]")) focusFirst(event, "main [role=grid]");
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function focusFirst(event: KeyboardEvent, selector: string): void {
  const found = document.querySelector<HTMLElement>(selector);
  if (found === null || event.defaultPrevented) return;
  event.preventDefault();
  found.focus();
  if (event.key === "j") found.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
}
