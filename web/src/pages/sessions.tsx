import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call, events, may } from "../api";
import type { Event as TaskEvent, History, Models, Problem, Session, Sessions, Task } from "../api-types";
import type { Props } from "../lazy";
import { ActionProblem, useAction } from "../parts/action";
import { count, money, printable } from "../parts/format";
import { List } from "../parts/list";
import { Markdown } from "../parts/markdown";
import { Ago, Confirm, Empty, Loaded, ProblemBox, State } from "../parts/parts";
import { useLiveResource } from "../live";
import { merge, useMore } from "../more";
import { useResource } from "../resource";
import { go, link } from "../router";
import { Steps, type Step } from "./steps";
import { Tool } from "./timeline";

const pageSize = 500;
const olderSize = 1000;

function keyOf(session: Session): string {
  return `${session.account ?? ""} ${session.key}`;
}

/** SessionsPlace is the list of sessions, or one of them. */
export function SessionsPlace({ id }: Props) {
  return id ? <SessionPage key={id} id={id} /> : <SessionsPage />;
}

/** SessionsPage lists sessions, those that changed last first. */
function SessionsPage() {
  const [text, setText] = useState("");
  const pathOf = (limit: number): string => `/api/v1/sessions?limit=${limit}${text ? `&search=${encodeURIComponent(text)}` : ""}`;
  const all = useLiveResource<Sessions>(pathOf(pageSize), "sessions");
  const older = useMore<Sessions, Session>(pathOf(olderSize), all.data?.next, (page) => page.sessions);
  return (
    <div class="page full">
      <div class="tools">
        <input type="search" aria-label="Filter" placeholder="Find by key or label" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <span class="grow" />
        {may("run") && <NewSession />}
      </div>
      <Loaded of={all}>{(data) => data.sessions.length === 0 ? <Empty command={'atoll agent -m "…"'}>{text ? "No session matches." : "No sessions yet."}</Empty> : (
        <List label="Sessions" rows={merge(data.sessions, older.rows, keyOf)} keyOf={keyOf} onEnd={() => void older.more()} address={(session) => link("sessions", session.key)} columns={[
          { title: "Session", width: "minmax(160px, 2fr)", cell: (session) => printable(session.label || session.key, 120) },
          { title: "Key", width: "minmax(140px, 1.4fr)", wide: true, cell: (session) => <code>{printable(session.key, 120)}</code> },
          { title: "Agent", width: "minmax(80px, 1fr)", wide: true, cell: (session) => session.agent },
          { title: "Model", width: "minmax(100px, 1fr)", wide: true, cell: (session) => session.model ? <span title="set for this session">{session.model}</span> : session.lastModel ?? "–" },
          { title: "Account", width: "100px", wide: true, cell: (session) => session.account ?? "" },
          { title: "Tokens", width: "90px", right: true, wide: true, cell: (session) => count((session.total?.input ?? 0) + (session.total?.output ?? 0)) },
          { title: "Changed", width: "90px", right: true, cell: (session) => <Ago at={session.updated} /> },
        ]} />
      )}</Loaded>
    </div>
  );
}

function NewSession() {
  const [open, setOpen] = useState(false);
  const [key, setKey] = useState("");
  if (!open) return <button type="button" class="primary" onClick={() => setOpen(true)}>New session</button>;
  const submit = (event: Event): void => {
    event.preventDefault();
    if (key.trim() !== "") go(link("sessions", key.trim()));
  };
  return (
    <form class="row" aria-label="New session" onSubmit={submit}>
      <label>Key <input autofocus required value={key} placeholder="agent:main:work" onInput={(event) => setKey(event.currentTarget.value)} /></label>
      <button type="submit" class="primary">Open</button><button type="button" onClick={() => setOpen(false)}>Close</button>
    </form>
  );
}

/** SessionPage is a conversation with an agent. */
function SessionPage({ id }: { id: string }) {
  const path = `/api/v1/sessions/${encodeURIComponent(id)}`;
  const session = useLiveResource<Session>(path, "sessions");
  const history = useResource<History>(`${path}/history?limit=200`);
  const isNew = session.problem?.status === 404 && session.data === undefined;
  const reload = (): void => { session.reload(); history.reload(); };
  return (
    <div class="page chat">
      <div class="title">
        <h2>{printable(session.data?.label || id, 120)}</h2>{session.data && <span class="tag">{session.data.agent}</span>}{session.data?.abortedLastRun && <State is="aborted" />}
        <span class="grow" />
        {session.data && <Settings session={session.data} path={path} onChange={reload} />}
      </div>
      {session.problem && !isNew && <ProblemBox problem={session.problem} />}
      <Conversation path={path} history={history.data} isNew={isNew} onEnd={reload} />
    </div>
  );
}

/** Settings changes what is set for a session, empties it or removes it. */
function Settings({ session, path, onChange }: { session: Session; path: string; onChange: () => void }) {
  const models = useResource<Models>("/api/v1/models");
  const action = useAction();
  const set = async (patch: Record<string, unknown>): Promise<void> => {
    await action.run("PATCH", path, patch);
    onChange();
  };
  if (!may("operator")) return <span class="faint">{session.model ?? session.lastModel ?? ""}</span>;
  return (
    <>
      <label>Model <select value={session.model ?? ""} disabled={action.busy} onChange={(event) => void set({ model: event.currentTarget.value || null })}>
        <option value="">the agent's own</option>{models.data?.models.map((model) => <option key={model.id} value={model.id}>{model.id}</option>)}
      </select></label>
      <label>Thinking <select value={session.levels?.["thinkingLevel"] ?? ""} disabled={action.busy} onChange={(event) => void set({ levels: { thinkingLevel: event.currentTarget.value || null } })}>
        <option value="">as configured</option>{["off", "minimal", "low", "medium", "high"].map((level) => <option key={level}>{level}</option>)}
      </select></label>
      <Confirm label="Reset" question={`Begin the session ${session.key} anew? What was said is not told to the model any more.`} onYes={() => void action.run("POST", `${path}/reset`).then(onChange)} />
      <Confirm label="Delete" question={`Delete the session ${session.key} and its transcript?`} onYes={() => void action.run("DELETE", path).then((done) => { if (done) go(link("sessions")); })} />
      <ActionProblem of={action} />
    </>
  );
}

/** Turn is a message that was sent from this page, with what came of it. */
interface Turn {
  message: string;
  steps: Steps;
  count: number;
  task?: Task;
  problem?: Problem;
  /** ended has the history as it was when the turn ended: the turn is shown until one has come that has it. */
  ended?: { history: History | undefined };
}

/** SaidStep is a step with the role of who said it. */
interface SaidStep {
  role: string;
  step: Step;
}

/** Conversation shows what was said, and sends. */
function Conversation({ path, history, isNew, onEnd }: { path: string; history: History | undefined; isNew: boolean; onEnd: () => void }) {
  const [last, setTurn] = useState<Turn>();
  const turn = last !== undefined && isIn(history, last) ? undefined : last;
  const latest = useRef(history);
  latest.current = history;
  const end = useRef<HTMLDivElement>(null);
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  const all = [...(history === undefined ? [] : stepsOf(history)), ...(turn === undefined ? [] : stepsOfTurn(turn))];
  const keys = keysOf(all);
  const busy = turn !== undefined && turn.problem === undefined && (turn.task === undefined || !["done", "failed", "aborted"].includes(turn.task.state));
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [all.length, turn?.count, busy]);
  const send = async (message: string): Promise<void> => {
    const mine: Turn = { message, steps: new Steps(), count: 0 };
    const show = (): void => setTurn({ ...mine });
    show();
    await say(path, message, mine, show, abort.current.signal);
    if (abort.current.signal.aborted) return;
    if (mine.problem === undefined) mine.ended = { history: latest.current };
    show();
    onEnd();
  };
  return (
    <>
      <div class="said" role="log" aria-label="Conversation" tabIndex={0}>
        {all.length === 0 && <Empty>{isNew ? "This session begins with the first message." : "Nothing was said yet."}</Empty>}
        {all.map((one, i) => <Said key={keys[i]} step={one.step} role={one.role} />)}
        {busy && <p class="faint"><State is={turn.task?.state ?? "queued"} /></p>}
        {last?.task?.error && <p class="bad">{last.task.error.code}: {printable(last.task.error.message, 1000)} {last.task.hint && <span class="hint">{printable(last.task.hint, 500)}</span>}</p>}
        {turn?.problem && <ProblemBox problem={turn.problem} />}
        <div ref={end} />
      </div>
      {may("run") ? <Composer busy={busy} onSend={(message) => void send(message)} onAbort={() => void call("POST", `${path}/abort`).catch(() => undefined)} cost={last?.task?.microUsd} />
        : <p class="faint">Your token may read. Saying something needs the scope run.</p>}
    </>
  );
}

/** say sends a message and takes over what comes of it; a lost stream is asked for again. */
async function say(path: string, message: string, mine: Turn, show: () => void, abort: AbortSignal): Promise<void> {
  try {
    const body = JSON.stringify({ message });
    await take(events(`${path}/messages`, abort, { method: "POST", body }), mine, show);
    for (let wait = 500; mine.task && !abort.aborted && !["done", "failed", "aborted"].includes(mine.task.state); wait = Math.min(8000, wait * 2)) {
      await new Promise((done) => setTimeout(done, wait));
      const last = mine.steps.last;
      await take(events(`/api/v1/tasks/${encodeURIComponent(mine.task.id)}/events?after=${last}`, abort), mine, show).catch(() => undefined);
    }
  } catch (error) {
    if (!abort.aborted) mine.problem = error instanceof ApiError ? error.problem : { type: "about:blank", title: "Unreachable", status: 0, code: "unreachable", detail: "The gateway does not answer.", hint: "What was said is in the history once it is back." };
  }
}

async function take(stream: AsyncGenerator<{ event: string; data: unknown }>, mine: Turn, show: () => void): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  for await (const { event, data } of stream) {
    if (event === "task" || event === "answer") mine.task = data as Task;
    else {
      mine.steps.add([data as TaskEvent]);
      mine.count++;
      if (mine.task?.state === "queued") mine.task = { ...mine.task, state: "running" };
    }
    timer ??= setTimeout(() => { timer = undefined; show(); }, 60);
  }
  clearTimeout(timer);
}

function Composer({ busy, onSend, onAbort, cost }: { busy: boolean; onSend: (message: string) => void; onAbort: () => void; cost: number | undefined }) {
  const [text, setText] = useState("");
  const send = (): void => {
    if (text.trim() === "" || busy) return;
    onSend(text);
    setText("");
  };
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); send(); }}>
      <textarea aria-label="Message" rows={3} placeholder="Message. Enter sends, Shift Enter begins a line." value={text} onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); } }} />
      <div class="row">{cost !== undefined && <span class="faint">{money(cost)}</span>}<span class="grow" />
        {busy && <button type="button" class="danger" onClick={onAbort}>Stop</button>}<button type="submit" class="primary" disabled={busy || text.trim() === ""}>Send</button></div>
    </form>
  );
}

function Said({ step, role }: { step: Step; role: string }) {
  if (step.kind === "tool") return <div class="card said-tool"><Tool step={step} /></div>;
  if (step.kind === "error") return <p class="bad">{printable(step.error?.message ?? step.text, 2000)}</p>;
  return <article class={`message ${role}`} aria-label={role === "user" ? "You" : "Agent"}><Markdown text={step.text} /></article>;
}

/** isIn reports whether a history that came after the end of a turn has it. One that failed before it began is in none. */
function isIn(history: History | undefined, turn: Turn): boolean {
  if (turn.ended === undefined || history === undefined || turn.ended.history === history) return false;
  return turn.task?.state === "done" || history.messages.filter((message) => message.role === "user").pop()?.content === turn.message;
}

/** stepsOfTurn returns the message of a turn and what came of it. */
function stepsOfTurn(turn: Turn): SaidStep[] {
  const steps = turn.steps.all.filter((step) => step.kind === "words" || step.kind === "tool" || step.kind === "error");
  return [{ role: "user", step: { seq: 0, at: 0, kind: "words", text: turn.message, failed: false } }, ...steps.map((step) => ({ role: "assistant", step }))];
}

/** keysOf returns a key for each step: a tool call keeps its own when the history takes the place of its turn, so that it stays open. */
function keysOf(all: SaidStep[]): string[] {
  const seen = new Map<string, number>();
  return all.map(({ step }) => {
    const name = step.call?.id ?? step.kind;
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return `${name} ${count}`;
  });
}

/** stepsOf returns the messages of a history, each tool call with its result. */
function stepsOf(history: History): SaidStep[] {
  const made: SaidStep[] = [];
  const open = new Map<string, Step>();
  history.messages.forEach((message, i) => {
    if (message.role === "tool") {
      const step = open.get(message.callId ?? "");
      if (step) { step.result = message.content ?? ""; step.failed = message.isError ?? false; }
      return;
    }
    if (message.content) made.push({ role: message.role, step: { seq: i, at: 0, kind: "words", text: message.content, failed: false } });
    for (const one of message.calls ?? []) {
      const step: Step = { seq: i, at: 0, kind: "tool", text: "", call: one, failed: false };
      open.set(one.id, step);
      made.push({ role: message.role, step });
    }
  });
  return made;
}

