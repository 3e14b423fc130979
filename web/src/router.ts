import { computed, signal } from "@preact/signals";

/** Route is where the page is: #/NAME/ID?QUERY. */
export interface Route {
  page: string;
  id: string;
  query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

/** route is the current place. */
export const route = computed<Route>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/");
  return { page: page === "" ? "now" : page, id: decode(rest.join("/")), query: new URLSearchParams(query) };
});

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** link returns the address of a place. */
export function link(page: string, id = "", query: Record<string, string> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const text = given.length > 0 ? `?${new URLSearchParams(given).toString()}` : "";
  return `#/${page}${id === "" ? "" : `/${encodeURIComponent(id)}`}${text}`;
}

/** go opens a place. */
export function go(address: string): void {
  location.hash = address;
}
