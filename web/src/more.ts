import { useState } from "preact/hooks";
import { call } from "./api";

interface Loaded<T> {
  path: string;
  rows: T[];
  next: string | undefined;
}

/** useMore returns the rows of a list that come after those that are known, loaded page by page. first is the cursor of the first of them: undefined if there are none, "" for a list that begins there. */
export function useMore<P extends { next?: string }, T>(path: string, first: string | undefined, rowsOf: (page: P) => T[]): { rows: T[]; more: () => Promise<void> } {
  const [loaded, setLoaded] = useState<Loaded<T>>();
  const [busy, setBusy] = useState(false);
  const mine = loaded?.path === path ? loaded : undefined;
  const more = async (): Promise<void> => {
    const cursor = mine ? mine.next : first;
    if (cursor === undefined || busy) return;
    setBusy(true);
    try {
      const page = await call<P>("GET", cursor === "" ? path : `${path}&cursor=${encodeURIComponent(cursor)}`);
      setLoaded({ path, rows: [...(mine?.rows ?? []), ...rowsOf(page)], next: page.next });
    } catch { /* the list stays as it is, and the next scroll tries again */ } finally {
      setBusy(false);
    }
  };
  return { rows: mine?.rows ?? [], more };
}

/** merge joins rows that are up to date with others, without those that are in both. */
export function merge<T>(newest: T[], others: T[], keyOf: (row: T) => string): T[] {
  const known = new Set(newest.map(keyOf));
  return others.length === 0 ? newest : [...newest, ...others.filter((row) => !known.has(keyOf(row)))];
}
