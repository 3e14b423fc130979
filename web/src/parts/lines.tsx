import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { printable } from "./format";

const lineHeight = 18;
const longestLine = 2000;

/** Lines shows text of any length; only the lines in sight are in the document. */
export function Lines({ text, label, diff = false }: { text: string; label: string; diff?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [height, setHeight] = useState(360);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setHeight(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const lines = useMemo(() => text.replace(/\n$/, "").split("\n"), [text]);
  const shown = Math.min(lines.length, Math.ceil(height / lineHeight) + 12);
  const from = Math.max(0, Math.min(first - 6, lines.length - shown));
  return (
    <div class={`lines${diff ? " diff" : ""}`} ref={box} tabIndex={0} role="region" aria-label={label} style={{ height: `${Math.min(lines.length, 24) * lineHeight + 18}px` }}
      onScroll={() => setFirst(Math.floor((box.current?.scrollTop ?? 0) / lineHeight))}>
      <div style={{ height: `${lines.length * lineHeight}px` }}>
        <pre style={{ transform: `translateY(${from * lineHeight}px)` }}>{lines.slice(from, from + shown).map((line, i) => (
          <span key={from + i} class={diff ? kindOf(line) : ""}>{printable(line, longestLine)}</span>
        ))}</pre>
      </div>
    </div>
  );
}

function kindOf(line: string): string {
  if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("diff ") || line.startsWith("*** ")) return "file";
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return line.startsWith("@@") ? "hunk" : "";
}
