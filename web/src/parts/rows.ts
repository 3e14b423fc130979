import { useEffect, useRef } from "preact/hooks";

/** useRowKeys lets j and k go through the links of the lists in an element. */
export function useRowKeys(): { current: HTMLDivElement | null } {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const step = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog, [role=grid]");
      if (step === 0 || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const rows = [...(box.current?.querySelectorAll<HTMLAnchorElement>(".rows a") ?? [])];
      const at = rows.findIndex((row) => row === document.activeElement);
      const next = rows[Math.max(0, Math.min(rows.length - 1, at + step))];
      if (next === undefined) return;
      event.preventDefault();
      next.focus();
      next.scrollIntoView({ block: "nearest" });
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return box;
}
