import { useEffect, useRef, useState } from "preact/hooks";
import { may, me } from "../api";
import type { Agents, Models, Run, Runs } from "../api-types";
import { gatewayTime, now } from "../clock";
import type { Props } from "../lazy";
import { ActionProblem, useAction } from "../parts/action";
import { count, duration, money, printable } from "../parts/format";
import { List, type Column } from "../parts/list";
import { Ago, Empty, Loaded, State } from "../parts/parts";
import { useLive } from "../live";
import { merge, useMore } from "../more";
import { useResource, type Resource } from "../resource";
import { go, link, route } from "../router";
import { stateOf, tookOf } from "../runs";
import { ComparePage } from "./compare";
import { RunPage } from "./run";

const pageSize = 500;
const olderSize = 1000;
const periods: Record<string, number> = { "24 h": 1, "7 days": 7, "30 days": 30 };

/** RunsPlace is the list of runs, one of them, or two compared. */
export function RunsPlace({ id }: Props) {
  if (id === "compare") return <ComparePage />;
  return id ? <RunPage key={id} id={id} /> : <RunsPage />;
}

/** RunsPage lists runs, the latest first, and starts one. */
function RunsPage() {
  const agents = useResource<Agents>("/api/v1/ai/agents", 300000);
  const query = route.value.query;
  const of = (name: string): string => query.get(name) ?? "";
  const filter = (key: string, value: string): void => go(link("runs", "", { ...Object.fromEntries(query), [key]: value }));
  const first = useResource<Runs>(pathOf(query, pageSize));
  const latest = useLatest(first);
  const { rows: older, more } = useMore<Runs, Run>(pathOf(query, olderSize), first.data?.next, (page) => page.runs);
  const [marked, setMarked] = useState<string[]>([]);
  const mark = (key: string): void => setMarked((old) => (old.includes(key) ? old.filter((other) => other !== key) : [...old, key].slice(-2)));
  const filtered = ["q", "state", "agent", "period"].some((name) => of(name) !== "");
  return (
    <div class="page full">
      <div class="tools">
        <Search value={of("q")} onChange={(value) => filter("q", value)} />
        <label>State <select value={of("state")} onChange={(event) => filter("state", event.currentTarget.value)}>
          <option value="">all</option><option value="open">under way</option><option value="done">done</option><option value="failed">failed</option>
        </select></label>
        <label>Agent <select value={of("agent")} onChange={(event) => filter("agent", event.currentTarget.value)}>
          <option value="">all</option>
          {agents.data?.agents.map((a) => <option key={a.graphId} value={a.graphId}>{a.name}</option>)}
        </select></label>
        <label>Begun <select value={of("period")} onChange={(event) => filter("period", event.currentTarget.value)}>
          <option value="">at any time</option>{Object.keys(periods).map((name) => <option key={name} value={name}>in {name}</option>)}
        </select></label>
        {first.data && <span class="faint">{count(first.data.total)} runs</span>}
        <span class="grow" />
        {marked.length === 2 && <a class="button" href={link("runs", "compare", { a: marked[0] ?? "", b: marked[1] ?? "" })}>Compare two</a>}
        {may("run") && agents.data && <Start agents={agents.data} />}
      </div>
      <Loaded of={first}>{(data) => {
        const rows = merge(data.runs, older, (run) => run.id).map((run) => latest?.get(run.id) ?? run);
        if (rows.length === 0) return <Empty command={'atoll runs start -m "…"'}>{filtered ? "No run matches." : "No runs yet."}</Empty>;
        return <List label="Runs" rows={rows} keyOf={(run) => run.id} address={(run) => link("runs", run.id)} onEnd={() => void more()} columns={columns(marked, mark)} marked={marked} onMark={mark} />;
      }}</Loaded>
    </div>
  );
}

function columns(marked: string[], mark: (key: string) => void): Column<Run>[] {
  const bound = me.value?.account !== undefined && me.value.account !== "";
  const all: Column<Run>[] = [
    { title: "State", width: "82px", cell: (run) => <State is={stateOf(run)} /> },
    { title: "Task", width: "minmax(220px, 4fr)", cell: (run) => run.task ? printable(run.task, 200) : <span class="faint">{run.id}</span> },
    { title: "Agent", width: "minmax(70px, 1fr)", wide: true, cell: (run) => run.graphId },
    { title: "Model", width: "minmax(70px, 1fr)", wide: true, cell: (run) => run.model || "–" },
    { title: "Result", width: "minmax(90px, 1.2fr)", wide: true, cell: (run) => run.error ? <span class="bad">{run.error.code}</span> : run.branch ?? "" },
    { title: "Account", width: "minmax(50px, .7fr)", wide: true, cell: (run) => run.account ?? "" },
    { title: "Cost", width: "66px", right: true, wide: true, cell: (run) => <span class={run.bill.provisional ? "provisional" : ""} title={run.bill.provisional ? "provisional" : run.bill.source}>{money(run.bill.microUsd)}</span> },
    { title: "Took", width: "86px", right: true, wide: true, cell: (run) => duration(tookOf(run, now.value)) },
    { title: "Begun", width: "80px", right: true, cell: (run) => <Ago at={run.created} /> },
    { title: "Compare", width: "58px", wide: true, right: true, cell: (run) => <input type="checkbox" tabIndex={-1} aria-label={`Compare ${run.id}`} checked={marked.includes(run.id)} onChange={() => mark(run.id)} /> },
  ];
  return all.filter((column) => column.title !== "Account" || !bound);
}

/** pathOf is what lists so many runs that a query of this page chooses. */
function pathOf(query: URLSearchParams, limit: number): string {
  const given = new URLSearchParams({ limit: String(limit), fields: "summary" });
  const since = periods[query.get("period") ?? ""];
  // Rounded to the hour, so that the address stays the same while the page is open.
  if (since !== undefined) given.set("since", new Date(Math.floor(gatewayTime() / 3600000 - since * 24) * 3600000).toISOString());
  for (const [from, to] of [["q", "q"], ["state", "state"], ["agent", "graphId"], ["branch", "branch"], ["model", "model"], ["error", "error"]] as const) {
    const value = query.get(from);
    if (value) given.set(to, value);
  }
  return `/api/v1/ai/runs?${given.toString()}`;
}

/** Search is a filter that asks the gateway once a person stops typing. */
function Search({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange(text), 300);
    return () => clearTimeout(timer);
  }, [text]);
  return <input type="search" aria-label="Filter" placeholder="Find in tasks, ids, branches, errors" maxLength={200} value={text} onInput={(event) => setText(event.currentTarget.value)} />;
}

/** useLatest returns the latest runs as they are now; one that is new has the list loaded again. */
function useLatest(first: Resource<Runs>): ReadonlyMap<string, Run> | undefined {
  const latest = useLive<Run>("runs").rows;
  const seen = useRef<Set<string> | undefined>(undefined);
  useEffect(() => {
    if (latest === undefined) return;
    const ids = [...latest.keys()];
    if (seen.current !== undefined && ids.some((id) => !seen.current?.has(id))) first.reload();
    seen.current = new Set(ids);
  }, [latest]);
  return latest;
}

/** Start is the form that starts a run. */
function Start({ agents }: { agents: Agents }) {
  const [open, setOpen] = useState(route.value.query.has("start"));
  if (!open) return <button type="button" class="primary" onClick={() => setOpen(true)}>Start a run</button>;
  return <StartForm agents={agents} onClose={() => setOpen(false)} />;
}

function StartForm({ agents, onClose }: { agents: Agents; onClose: () => void }) {
  const models = useResource<Models>("/api/v1/models");
  const [given, setGiven] = useState({ graphId: agents.agents.find((a) => a.unavailable === undefined)?.graphId ?? "", message: route.value.query.get("task") ?? "", branchName: "", workItemId: "", stateKey: "", model: "" });
  const action = useAction();
  const field = (name: keyof typeof given) => ({ value: given[name], onInput: (event: { currentTarget: { value: string } }) => setGiven({ ...given, [name]: event.currentTarget.value }) });
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const body: Record<string, string> = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
    if (given.stateKey !== "") body["branchMode"] = "thread";
    const run = await action.run<Run>("POST", "/api/v1/ai/runs", body);
    if (run) go(link("runs", run.id));
  };
  return (
    <form class="start" onSubmit={(event) => void submit(event)} aria-label="Start a run" onKeyDown={(event) => { if (event.key === "Escape") onClose(); }}>
      <label>Agent <select {...field("graphId")}>
        {agents.agents.map((a) => <option key={a.graphId} value={a.graphId} disabled={a.unavailable !== undefined}>{a.name}</option>)}
      </select></label>
      <label>Model <select {...field("model")}><option value="">the agent's own</option>{models.data?.models.map((model) => <option key={model.id} value={model.id}>{model.id}</option>)}</select></label>
      <label>Branch <input {...field("branchName")} placeholder="none: no code output" /></label>
      <label class="wide">Task <textarea required rows={4} autofocus {...field("message")} /></label>
      <details class="wide"><summary>Other ways to name the branch</summary>
        <div class="row">
          <label>Work item <input {...field("workItemId")} /></label>
          <label>One branch for this conversation <input {...field("stateKey")} placeholder="its key" /></label>
        </div>
      </details>
      <div class="row wide"><button type="submit" class="primary" disabled={action.busy}>Start</button><button type="button" onClick={onClose}>Close</button></div>
      <ActionProblem of={action} />
    </form>
  );
}
