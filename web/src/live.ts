import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { me, pageSecret } from "./api";
import type { LiveMessage, Problem } from "./api-types";
import { useResource, type Resource } from "./resource";

/** Live is what is known of a topic of rows. rows is undefined until they have come once. */
export interface Live<T> {
  rows: ReadonlyMap<string, T> | undefined;
  problem: Problem | undefined;
}

/** online is whether the connection stands; what is shown is not kept up to date without it. */
export const online = signal(false);

type Listener = (message: LiveMessage) => void;

interface Topic {
  listeners: Set<Listener>;
  seq: number;
  rows: Map<string, unknown> | undefined;
  problem: Problem | undefined;
}

const topics = new Map<string, Topic>();
let socket: WebSocket | undefined;
let ready = false;
let wait = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

const firstWait = 500;
const longestWait = 15000;
const hiddenFor = 30000;

/** subscribe calls back with the messages of a topic until the function that it returns is called. A snapshot makes void what came before. */
export function subscribe(name: string, listener: Listener): () => void {
  let topic = topics.get(name);
  if (topic === undefined) {
    topic = { listeners: new Set(), seq: 0, rows: undefined, problem: undefined };
    topics.set(name, topic);
    ask(name, 0);
  } else if (name.includes(":")) {
    topic.seq = 0; // events are not kept here
    ask(name, 0);
  } else if (topic.rows !== undefined) {
    listener({ type: "snapshot", topic: name, keys: [...topic.rows.keys()], rows: [...topic.rows.values()] });
  } else if (topic.problem !== undefined) {
    listener({ type: "problem", topic: name, problem: topic.problem });
  }
  topic.listeners.add(listener);
  connect();
  return () => leave(name, listener);
}

function leave(name: string, listener: Listener): void {
  const topic = topics.get(name);
  topic?.listeners.delete(listener);
  if (topic?.listeners.size !== 0) return;
  topics.delete(name);
  send({ type: "unsubscribe", topic: name });
}

/** useLive returns the rows of a topic, kept up to date; "" is no topic. */
export function useLive<T>(name: string): Live<T> {
  const [state, setState] = useState<Live<T> & { name: string }>({ name, rows: undefined, problem: undefined });
  useEffect(() => {
    if (name === "") return;
    let frame = 0;
    const show = (): void => {
      frame = 0;
      const topic = topics.get(name);
      setState({ name, rows: topic?.rows === undefined ? undefined : new Map(topic.rows as Map<string, T>), problem: topic?.problem });
    };
    const quit = subscribe(name, () => {
      frame ||= requestAnimationFrame(show);
    });
    return () => {
      cancelAnimationFrame(frame);
      quit();
    };
  }, [name]);
  return state.name === name ? state : { rows: undefined, problem: undefined };
}

/** useRows returns the rows of a topic as a list. */
export function useRows<T>(name: string): { rows: T[] | undefined; problem: Problem | undefined } {
  const live = useLive<T>(name);
  return { rows: live.rows && [...live.rows.values()], problem: live.problem };
}

/** asResource shows a live list as what Loaded takes. */
export function asResource<T>(live: { rows: T[] | undefined; problem: Problem | undefined }): Resource<T[]> {
  return { data: live.rows, problem: live.problem, stale: live.problem !== undefined && live.rows !== undefined, reload: () => undefined };
}

/** useLiveResource loads a path, and again when a topic has changed, at most once a second. */
export function useLiveResource<T>(path: string, topic: string): Resource<T> {
  const resource = useResource<T>(path);
  useChanges(topic, resource.reload);
  return resource;
}

const changesEvery = 1000;

/** useChanges calls back when a topic has changed, at most once a second. */
export function useChanges(name: string, changed: () => void): void {
  useEffect(() => {
    let first = true;
    let waiting: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const call = (): void => {
      waiting = undefined;
      last = Date.now();
      changed();
    };
    const quit = subscribe(name, (message) => {
      if (message.type === "delta" || (message.type === "snapshot" && !first)) waiting ??= setTimeout(call, Math.max(0, last + changesEvery - Date.now()));
      first = false;
    });
    return () => {
      clearTimeout(waiting);
      quit();
    };
  }, [name]);
}

function ask(name: string, since: number): void {
  send({ type: "subscribe", topic: name, ...(since > 0 ? { since } : {}) });
}

function send(request: unknown): void {
  if (ready && socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(request));
}

/** connect opens the one connection of this page, unless it is open, nobody listens or the page is hidden. */
function connect(): void {
  if (socket !== undefined || topics.size === 0 || me.value === null || document.hidden) return;
  clearTimeout(timer);
  const opened = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/v1/live`, "atoll");
  socket = opened;
  opened.onopen = () => opened.send(JSON.stringify({ type: "login", page: pageSecret() }));
  opened.onmessage = (event: MessageEvent<string>) => receive(JSON.parse(event.data) as LiveMessage);
  opened.onclose = () => {
    if (socket !== opened) return;
    drop();
    wait = Math.min(longestWait, wait === 0 ? firstWait : wait * 2);
    timer = setTimeout(connect, wait * (0.5 + Math.random()));
  };
}

function drop(): void {
  const closed = socket;
  socket = undefined;
  ready = false;
  online.value = false;
  closed?.close();
}

function receive(message: LiveMessage): void {
  if (message.type === "ready") {
    ready = true;
    wait = 0;
    online.value = true;
    for (const [name, topic] of topics) ask(name, topic.seq);
    return;
  }
  const topic = topics.get(message.topic ?? "");
  if (topic === undefined) return;
  keep(topic, message);
  for (const listener of [...topic.listeners]) listener(message);
  if (message.type === "problem" && (message.problem?.status ?? 0) >= 500) setTimeout(() => topics.get(message.topic ?? "") === topic && ask(message.topic ?? "", 0), longestWait);
}

/** keep applies a message to what is known of its topic. */
function keep(topic: Topic, message: LiveMessage): void {
  topic.problem = message.problem ?? undefined;
  if (message.type === "problem") return;
  topic.seq = message.seq ?? topic.seq;
  if (message.type === "snapshot" || topic.rows === undefined) topic.rows = new Map();
  message.keys?.forEach((key, i) => topic.rows?.set(key, message.rows?.[i]));
  message.removed?.forEach((key) => topic.rows?.delete(key));
}

// Somebody else who logs in must not see what was kept of the one before.
let who = "";
me.subscribe((caller) => {
  const now = caller === null ? "" : `${caller.name} ${caller.account ?? ""}`;
  if (now === who) return;
  who = now;
  drop();
  for (const topic of topics.values()) Object.assign(topic, { seq: 0, rows: undefined, problem: undefined });
  connect();
});

let hiding: ReturnType<typeof setTimeout> | undefined;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(drop, hiddenFor);
  else connect();
});
addEventListener("online", () => {
  wait = 0;
  connect();
});
