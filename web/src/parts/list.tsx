import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "../router";

/** Column is a column of a List. */
export interface Column<T> {
  title: string;
  width: string;
  cell: (row: T) => ComponentChildren;
  right?: boolean;
}

const rowHeight = 32;

/** List is a table of many rows of which only those in sight are in the document. */
export function List<T>({ rows, columns, keyOf, address, label, onEnd }: {
  rows: T[];
  columns: Column<T>[];
  keyOf: (row: T) => string;
  address?: (row: T) => string;
  label: string;
  onEnd?: () => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [height, setHeight] = useState(600);
  const [selected, setSelected] = useState(-1);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setHeight(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const shown = Math.ceil(height / rowHeight) + 12;
  const from = Math.max(0, Math.min(first - 6, rows.length - shown));
  useEffect(() => {
    if (onEnd && from + shown >= rows.length) onEnd();
  }, [from, shown, rows.length]);
  const template = columns.map((column) => column.width).join(" ");
  const move = (to: number): void => {
    const at = Math.max(0, Math.min(rows.length - 1, to));
    setSelected(at);
    const element = box.current;
    if (element === null) return;
    if (at * rowHeight < element.scrollTop) element.scrollTop = at * rowHeight;
    if ((at + 2) * rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = (at + 2) * rowHeight - element.clientHeight;
  };
  const onKey = (event: KeyboardEvent): void => {
    const chosen = rows[selected];
    if (event.key === "j" || event.key === "ArrowDown") move(selected + 1);
    else if (event.key === "k" || event.key === "ArrowUp") move(selected - 1);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(rows.length - 1);
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
      <div role="rowgroup" class="body" style={{ height: `${rows.length * rowHeight}px` }}>
        {rows.slice(from, from + shown).map((row, i) => (
          <div role="row" key={keyOf(row)} aria-rowindex={from + i + 2} aria-selected={from + i === selected} class={`line${from + i === selected ? " selected" : ""}${address ? " opens" : ""}`}
            style={{ gridTemplateColumns: template, transform: `translateY(${(from + i) * rowHeight}px)` }}
            onClick={(event) => { if (address && !(event.target instanceof HTMLElement && event.target.closest("button, a"))) go(address(row)); }}>
            {columns.map((column, at) => (
              <div role="gridcell" class={column.right ? "right" : ""} key={column.title}>
                {at === 0 && address ? <a href={address(row)} tabIndex={-1}>{column.cell(row)}</a> : column.cell(row)}
              </div>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}
