import { signal } from "@preact/signals";
import type { LoggedIn, Me, Problem } from "./api-types";
import { setClock } from "./clock";

/** ApiError is an answer of the gateway that is a problem. */
export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title);
  }
}

/** me is the caller, null until the page is logged in. */
export const me = signal<Me | null>(null);
/** connected is false while the gateway does not answer. */
export const connected = signal(true);

// The page's secret lives in this tab; another tab of the same pages asks for it. When
// somebody logs in or out in one tab, the others begin anew.
const storageKey = "atoll.page";
let secret = sessionStorage.getItem(storageKey) ?? "";
const tabs = new BroadcastChannel("atoll");
tabs.onmessage = (event: MessageEvent<{ ask?: boolean; secret?: string; over?: boolean }>) => {
  if (event.data.over) {
    keepSecret("");
    location.reload();
  }
  if (event.data.ask && secret !== "") tabs.postMessage({ secret });
  if (event.data.secret !== undefined && secret === "") keepSecret(event.data.secret);
};

function keepSecret(value: string): void {
  secret = value;
  if (value === "") sessionStorage.removeItem(storageKey);
  else sessionStorage.setItem(storageKey, value);
}

/** pageSecret returns what authenticates this page beside its cookie. */
export function pageSecret(): string {
  return secret;
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem;
  } catch {
    return { type: "about:blank", title: response.statusText, status: response.status, code: "unreadable", detail: `The gateway answered ${response.status}.` };
  }
}

/** request sends a request as this page and returns the answer, whatever it is. */
export async function request(method: string, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (secret !== "") headers.set("X-Atoll-Page", secret);
  let response: Response;
  try {
    response = await fetch(path, { ...init, method, headers, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "AbortError")) connected.value = false;
    throw error;
  }
  connected.value = true;
  setClock(response.headers.get("Date"));
  if (response.status === 401 && me.value !== null) forget();
  return response;
}

/** call sends a request and returns its JSON answer; a problem is thrown. */
export async function call<T>(method: string, path: string, body?: unknown, abort?: AbortSignal): Promise<T> {
  const init: RequestInit = { signal: abort ?? null };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json", Prefer: "respond-async" };
  }
  const response = await request(method, path, init);
  if (!response.ok) throw new ApiError(await problemOf(response));
  return (await response.json()) as T;
}

/** logIn exchanges a token or a code for a log-in of this browser. */
export async function logIn(proof: { token: string } | { code: string }): Promise<void> {
  const answer = await call<LoggedIn>("POST", "/api/v1/ui/login", proof);
  keepSecret(answer.page);
  tabs.postMessage({ over: true });
  me.value = answer.me;
}

/** resume finds the log-in of this tab, or that of another one. */
export async function resume(): Promise<void> {
  if (secret === "") {
    tabs.postMessage({ ask: true });
    await new Promise((done) => setTimeout(done, 120));
  }
  if (secret === "") return;
  try {
    me.value = await call<Me>("GET", "/api/v1/me");
  } catch (error) {
    if (error instanceof ApiError && error.problem.status === 401) forget();
    else throw error;
  }
}

/** logOut ends the log-in. */
export async function logOut(): Promise<void> {
  try {
    await call("POST", "/api/v1/ui/logout");
  } finally {
    forget();
    tabs.postMessage({ over: true });
  }
}

function forget(): void {
  keepSecret("");
  me.value = null;
}

/** may reports whether the caller has a scope. */
export function may(scope: "admin" | "operator" | "operator.approvals" | "run"): boolean {
  const order = ["admin", "operator", "operator.approvals", "run", "read"];
  const have = me.value?.scope ?? "read";
  if (have === "operator.approvals" && scope === "run") return false;
  return order.indexOf(have) <= order.indexOf(scope);
}

/** events reads the server-sent events of a path until it ends or is aborted. */
export async function* events(path: string, abort: AbortSignal, post?: { method: "POST"; body: string }): AsyncGenerator<{ event: string; data: unknown }> {
  const headers = { Accept: "text/event-stream", ...(post ? { "Content-Type": "application/json" } : {}) };
  const response = await request(post?.method ?? "GET", path, { headers, signal: abort, body: post?.body ?? null });
  if (!response.ok) throw new ApiError(await problemOf(response));
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const parsed = parseEvent(block);
      if (parsed !== null) yield parsed;
    }
  }
}

function parseEvent(block: string): { event: string; data: unknown } | null {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return data.length === 0 ? null : { event, data: JSON.parse(data.join("\n")) as unknown };
}
