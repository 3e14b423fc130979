import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go } from "../router";

/** Column is a column of a List. */
export interface Column<T> {
  title: string;
  width: string;
  cell: (row: T) => ComponentChildren;
  right?: boolean;
  /** wide: the column is left out on a phone. */
  wide?: boolean;
  /** from: the column is left out of lists that are narrower, in pixels. */
  from?: number;
}

const rowHeight = 32;

/** List is a table of many rows of which only those in sight are in the document. Rows that come before those in sight do not move them. */
export function List<T>({ rows, columns: all, keyOf, address, label, onEnd, marked, onMark }: {
  rows: T[];
  columns: Column<T>[];
  keyOf: (row: T) => string;
  address?: (row: T) => string;
  label: string;
  onEnd?: () => void;
  marked?: string[];
  onMark?: (key: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [size, setSize] = useState({ height: 600, width: 1000 });
  const [selected, setSelected] = useState<string>();
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setSize({ height: element.clientHeight, width: element.clientWidth }));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const fresh = useAnchor(box, rows, keyOf, first);
  const columns = all.filter((column) => size.width >= (column.from ?? (column.wide ? 640 : 0)));
  const shown = Math.min(50, Math.ceil(size.height / rowHeight) + 8);
  const from = Math.max(0, Math.min(first - 4, rows.length - shown));
  useEffect(() => {
    if (onEnd && from + shown >= rows.length) onEnd();
  }, [from, shown, rows.length]);
  const template = columns.map((column) => column.width).join(" ");
  const at = selected === undefined ? -1 : rows.findIndex((row) => keyOf(row) === selected);
  const move = (to: number): void => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    const row = rows[next];
    const element = box.current;
    if (row === undefined || element === null) return;
    setSelected(keyOf(row));
    if (next === rows.length - 1) onEnd?.();
    if (next * rowHeight < element.scrollTop) element.scrollTop = next * rowHeight;
    if ((next + 2) * rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = (next + 2) * rowHeight - element.clientHeight;
  };
  const onKey = (event: KeyboardEvent): void => {
    const chosen = rows[at];
    if (event.key === "j" || event.key === "ArrowDown") move(at + 1);
    else if (event.key === "k" || event.key === "ArrowUp") move(at - 1);
    else if (event.key === "PageDown") move(at + Math.floor(size.height / rowHeight) - 1);
    else if (event.key === "PageUp") move(at - Math.floor(size.height / rowHeight) + 1);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(rows.length - 1);
    else if (event.key === "x" && chosen !== undefined && onMark) onMark(keyOf(chosen));
    else if (event.key === "Enter" && chosen !== undefined && address) go(address(chosen));
    else return;
    event.preventDefault();
  };
  return (
    <div class="list" role="grid" aria-label={label} aria-rowcount={rows.length + 1} tabIndex={0} ref={box} onKeyDown={onKey}
      onScroll={() => setFirst(Math.floor((box.current?.scrollTop ?? 0) / rowHeight))}>
      <div class="head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map((column) => <div role="columnheader" class={column.right ? "right" : ""} key={column.title}>{column.title}</div>)}
      </div>
      {fresh > 0 && <button type="button" class="fresh" onClick={() => { if (box.current) box.current.scrollTop = 0; }}>{fresh} new</button>}
      <div role="rowgroup" class="body" style={{ height: `${rows.length * rowHeight}px` }}>
        {rows.slice(from, from + shown).map((row, i) => {
          const key = keyOf(row);
          return (
            <div role="row" key={key} aria-rowindex={from + i + 2} aria-selected={key === selected || (marked?.includes(key) ?? false)} class={`line${key === selected ? " selected" : ""}${address ? " opens" : ""}${marked?.includes(key) ? " marked" : ""}`}
              style={{ gridTemplateColumns: template, transform: `translateY(${(from + i) * rowHeight}px)` }}
              onClick={(event) => { if (address && !(event.target instanceof HTMLElement && event.target.closest("button, a, input"))) go(address(row)); }}>
              {columns.map((column, n) => (
                <div role="gridcell" class={column.right ? "right" : ""} key={column.title}>
                  {n === 0 && address ? <a href={address(row)} tabIndex={-1}>{column.cell(row)}</a> : column.cell(row)}
                </div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** useAnchor keeps the rows in sight where they are when others come before them, and returns how many came. */
function useAnchor<T>(box: { current: HTMLDivElement | null }, rows: T[], keyOf: (row: T) => string, first: number): number {
  const anchor = useRef<string | undefined>(undefined);
  const [fresh, setFresh] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || anchor.current === undefined || element.scrollTop < rowHeight) return;
    const now = rows.findIndex((row) => keyOf(row) === anchor.current);
    const came = now - Math.floor(element.scrollTop / rowHeight);
    if (now < 0 || came <= 0) return;
    element.scrollTop += came * rowHeight;
    setFresh((n) => n + came);
  }, [rows]);
  useLayoutEffect(() => {
    const row = rows[first];
    anchor.current = row === undefined ? undefined : keyOf(row);
    if (first === 0 && fresh > 0) setFresh(0);
  }, [first, rows]);
  return fresh;
}
