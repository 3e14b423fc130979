import type { ComponentChildren } from "preact";
import { go, link, route } from "../router";

/** Tabs are the parts of a page of which one is shown; its name is in the address. */
export function Tabs({ page, id, tabs, at }: { page: string; id: string; tabs: Record<string, string>; at: string }) {
  const names = Object.keys(tabs);
  const address = (name: string): string => link(page, id, { tab: name === names[0] ? "" : name });
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = names[names.indexOf(at) + step];
    if (step === 0 || next === undefined) return;
    event.preventDefault();
    go(address(next));
    requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus());
  };
  return (
    <div class="tabs" role="tablist" onKeyDown={onKey}>
      {names.map((name) => <a key={name} id={`tab-${name}`} role="tab" href={address(name)} aria-selected={name === at} tabIndex={name === at ? 0 : -1}>{tabs[name]}</a>)}
    </div>
  );
}

/** tabOf returns the tab of the address, or the first. */
export function tabOf(tabs: Record<string, string>): string {
  const asked = route.value.query.get("tab") ?? "";
  return asked in tabs ? asked : Object.keys(tabs)[0] ?? "";
}

/** Panel is what a tab shows. */
export function Panel({ tab, children }: { tab: string; children: ComponentChildren }) {
  return <div role="tabpanel" aria-labelledby={`tab-${tab}`} class="panel">{children}</div>;
}
