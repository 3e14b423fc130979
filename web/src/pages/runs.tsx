import { useEffect, useState } from "preact/hooks";
import { ApiError, call, may } from "../api";
import type { Agents, Problem, Run, Runs } from "../api-types";
import { duration, money, printable } from "../parts/format";
import { List } from "../parts/list";
import { Ago, Empty, Id, Loaded, ProblemBox, State, now } from "../parts/parts";
import { useResource } from "../resource";
import { go, link, route } from "../router";
import { stateOf, tookOf } from "../runs";

const pageSize = 500;

/** RunsPage lists runs, the latest first, and starts one. */
export function RunsPage() {
  const agents = useResource<Agents>("/api/v1/ai/agents", 300000);
  const agent = route.value.query.get("agent") ?? "";
  const state = route.value.query.get("state") ?? "";
  const [text, setText] = useState("");
  const first = useResource<Runs>(`/api/v1/ai/runs?limit=${pageSize}${agent ? `&graphId=${encodeURIComponent(agent)}` : ""}`, 4000);
  const [older, setOlder] = useState<Run[]>([]);
  const [next, setNext] = useState<string | undefined>();
  useEffect(() => { setOlder([]); setNext(undefined); }, [agent]);
  const more = async (): Promise<void> => {
    const cursor = older.length > 0 ? next : first.data?.next;
    if (!cursor) return;
    const page = await call<Runs>("GET", `/api/v1/ai/runs?limit=${pageSize}&cursor=${encodeURIComponent(cursor)}${agent ? `&graphId=${encodeURIComponent(agent)}` : ""}`);
    setOlder((old) => [...old, ...page.runs]);
    setNext(page.next);
  };
  const filter = (key: string, value: string): void => go(link("runs", "", { agent, state, [key]: value }));
  const shows = (run: Run): boolean => (state === "" || stateOf(run) === state) && (text === "" || `${run.id} ${run.graphId} ${run.model ?? ""} ${run.error?.code ?? ""} ${run.task ?? ""} ${run.branch ?? ""}`.toLowerCase().includes(text.toLowerCase()));
  return (
    <div class="page full">
      <div class="tools">
        <input type="search" aria-label="Filter" placeholder="Filter by task, id, agent, model, branch, error" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <label>State <select value={state} onChange={(event) => filter("state", event.currentTarget.value)}>
          {["", "queued", "running", "done", "failed"].map((value) => <option key={value} value={value}>{value === "" ? "all" : value}</option>)}
        </select></label>
        <label>Agent <select value={agent} onChange={(event) => filter("agent", event.currentTarget.value)}>
          <option value="">all</option>
          {agents.data?.agents.map((a) => <option key={a.graphId} value={a.graphId}>{a.name}</option>)}
        </select></label>
        <span class="grow" />
        {may("run") && agents.data && <Start agents={agents.data} />}
      </div>
      <Loaded of={first}>{(data) => {
        const rows = merge(data.runs, older).filter(shows);
        if (rows.length === 0) return <Empty command={'atoll runs start -m "…"'}>{text || state || agent ? "No run matches." : "No runs yet."}</Empty>;
        return <List label="Runs" rows={rows} keyOf={(run) => run.id} address={(run) => link("runs", run.id)} onEnd={() => void more()} columns={[
          { title: "State", width: "110px", cell: (run) => <State is={stateOf(run)} /> },
          { title: "Run", width: "150px", cell: (run) => <Id value={run.id} /> },
          { title: "Task", width: "minmax(160px, 2fr)", cell: (run) => printable(run.task ?? "", 200) },
          { title: "Agent", width: "minmax(110px, 1fr)", cell: (run) => run.graphId },
          { title: "Model", width: "minmax(100px, 1fr)", cell: (run) => run.model ?? "–" },
          { title: "Result", width: "minmax(120px, 1.4fr)", cell: (run) => run.error ? <span class="bad">{run.error.code}</span> : run.branch ?? "" },
          { title: "Cost", width: "80px", right: true, cell: (run) => <span class={run.bill.provisional ? "provisional" : ""} title={run.bill.provisional ? "provisional" : run.bill.source}>{money(run.bill.microUsd)}</span> },
          { title: "Took", width: "110px", right: true, cell: (run) => duration(tookOf(run, now.value)) },
          { title: "Begun", width: "100px", right: true, cell: (run) => <Ago at={run.created} /> },
        ]} />;
      }}</Loaded>
    </div>
  );
}

/** merge joins the newest runs with older pages, without those that are in both. */
function merge(newest: Run[], older: Run[]): Run[] {
  const known = new Set(newest.map((run) => run.id));
  return [...newest, ...older.filter((run) => !known.has(run.id))];
}

/** Start is the form that starts a run. */
function Start({ agents }: { agents: Agents }) {
  const [open, setOpen] = useState(false);
  const [agent, setAgent] = useState(agents.agents[0]?.graphId ?? "");
  const [message, setMessage] = useState("");
  const [branch, setBranch] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      const response = await call<Run>("POST", "/api/v1/ai/runs", { graphId: agent, message, ...(branch ? { branchName: branch } : {}) });
      go(link("runs", response.id));
    } catch (error) {
      if (error instanceof ApiError) setProblem(error.problem);
    }
  };
  if (!open) return <button type="button" class="primary" onClick={() => setOpen(true)}>Start a run</button>;
  return (
    <form class="start" onSubmit={(event) => void submit(event)} aria-label="Start a run">
      <label>Agent <select value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
        {agents.agents.map((a) => <option key={a.graphId} value={a.graphId} disabled={a.unavailable !== undefined}>{a.name}</option>)}
      </select></label>
      <label class="wide">Task <textarea required rows={3} value={message} onInput={(event) => setMessage(event.currentTarget.value)} /></label>
      <label>Branch <input value={branch} placeholder="none: no code output" onInput={(event) => setBranch(event.currentTarget.value)} /></label>
      <div class="row"><button type="button" onClick={() => setOpen(false)}>Close</button><button type="submit" class="primary">Start</button></div>
      {problem && <ProblemBox problem={problem} />}
    </form>
  );
}
