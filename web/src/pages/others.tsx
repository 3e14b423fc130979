import { useState } from "preact/hooks";
import type { Agents, Audit, Costs, Health, Ready } from "../api-types";
import { me } from "../api";
import { count, money, printable } from "../parts/format";
import { List } from "../parts/list";
import { Ago, Card, Empty, Loaded, State } from "../parts/parts";
import { useResource } from "../resource";
import { link } from "../router";

/** CostPage shows what was spent on models, by account and by run. */
export function CostPage() {
  const [days, setDays] = useState(7);
  const since = new Date();
  since.setHours(0, 0, 0, 0);
  since.setDate(since.getDate() - days + 1);
  const costs = useResource<Costs>(`/api/v1/costs?since=${encodeURIComponent(since.toISOString())}`, 60000);
  return (
    <div class="page">
      <div class="tools"><label>Since <select value={String(days)} onChange={(event) => setDays(Number(event.currentTarget.value))}>
        <option value="1">today</option><option value="7">7 days</option><option value="30">30 days</option><option value="365">a year</option>
      </select></label></div>
      <Loaded of={costs}>{(data) => (
        <>
          <Card title="By day"><Bars costs={data} days={Math.min(days, 30)} /></Card>
          <Card title="By account">
            {data.accounts.length === 0 ? <Empty>Nothing was spent.</Empty> : (
              <table class="plain"><thead><tr><th>Account</th><th class="right">Runs</th><th class="right">Calls</th><th class="right">Tokens</th><th class="right">Cost</th><th class="right">Provisional</th></tr></thead>
                <tbody>{data.accounts.map((account) => <tr key={account.account}><td>{account.account || "none"}</td><td class="right">{count(account.runs)}</td><td class="right">{count(account.calls)}</td><td class="right">{count(account.tokens)}</td><td class="right">{money(account.microUSD)}</td><td class="right provisional">{account.provisional ? money(account.provisional) : ""}</td></tr>)}</tbody></table>
            )}
          </Card>
          <Card title="By run">
            {data.runs.length === 0 ? <Empty>Nothing was spent.</Empty> : <div class="tall"><List label="Cost by run" rows={[...data.runs].sort((a, b) => b.microUSD - a.microUSD)} keyOf={(run) => run.run} address={(run) => link("runs", run.run)} columns={[
              { title: "Run", width: "minmax(160px, 2fr)", cell: (run) => run.run },
              { title: "Agent", width: "1fr", cell: (run) => run.agent },
              { title: "Calls", width: "80px", right: true, cell: (run) => count(run.calls) },
              { title: "Tokens", width: "100px", right: true, cell: (run) => count(run.tokens) },
              { title: "Cost", width: "100px", right: true, cell: (run) => money(run.microUSD) },
              { title: "Last", width: "100px", right: true, cell: (run) => <Ago at={run.last} /> },
            ]} /></div>}
          </Card>
        </>
      )}</Loaded>
    </div>
  );
}

/** Bars shows the cost of each day. */
function Bars({ costs, days }: { costs: Costs; days: number }) {
  const sums = new Array<number>(days).fill(0);
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  for (const run of costs.runs) {
    const back = Math.ceil((midnight.getTime() - Date.parse(run.last)) / 86400000);
    const at = days - 1 - Math.max(0, back);
    if (at >= 0 && Number.isFinite(run.microUSD)) sums[at] = (sums[at] ?? 0) + run.microUSD;
  }
  const most = Math.max(1, ...sums);
  const width = 100 / days;
  return (
    <svg class="bars" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label={`Cost of the last ${days} days, ${money(most)} at most`}>
      {sums.map((sum, i) => <rect key={i} x={i * width + width * 0.1} width={width * 0.8} y={29 - (sum / most) * 28} height={Math.max(0.3, (sum / most) * 28)}><title>{money(sum)}</title></rect>)}
    </svg>
  );
}

/** AuditPage shows the end of the hash-chained log. */
export function AuditPage() {
  const [denied, setDenied] = useState(false);
  const [text, setText] = useState("");
  const audit = useResource<Audit>(`/api/v1/audit?limit=1000${denied ? "&denied=true" : ""}`, 5000);
  return (
    <div class="page full">
      <div class="tools">
        <input type="search" aria-label="Filter" placeholder="Filter" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <label><input type="checkbox" checked={denied} onChange={(event) => setDenied(event.currentTarget.checked)} /> only refused</label>
      </div>
      <Loaded of={audit}>{(data) => {
        const rows = (data.records as Record<string, unknown>[]).filter((record) => text === "" || JSON.stringify(record).toLowerCase().includes(text.toLowerCase())).reverse();
        if (rows.length === 0) return <Empty>No record {text || denied ? "matches" : "yet"}.</Empty>;
        return <List label="Audit log" rows={rows} keyOf={(record) => String(record["hash"] ?? record["seq"] ?? JSON.stringify(record))} columns={[
          { title: "When", width: "100px", cell: (record) => <Ago at={field(record, "time", "ts", "at")} /> },
          { title: "Kind", width: "100px", cell: (record) => field(record, "kind") ?? "model" },
          { title: "Verdict", width: "110px", cell: (record) => <State is={field(record, "denied", "refused") ? "denied" : "allowed"} /> },
          { title: "Record", width: "minmax(200px, 1fr)", cell: (record) => <code title={printable(JSON.stringify(record, null, 1), 4000)}>{summary(record)}</code> },
        ]} />;
      }}</Loaded>
    </div>
  );
}

/** summary returns the members of a record beside those of the other columns. */
function summary(record: Record<string, unknown>): string {
  const rest = Object.entries(record).filter(([name]) => !["time", "kind", "hash", "prev", "denied"].includes(name));
  return printable(rest.map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join("  "), 400);
}

function field(record: Record<string, unknown>, ...names: string[]): string | undefined {
  for (const name of names) {
    const value = record[name];
    if (typeof value === "string" && value !== "") return value;
    if (value === true) return name;
  }
  return undefined;
}

/** CataloguePage lists the agents that runs can be given to. */
export function CataloguePage() {
  const agents = useResource<Agents>("/api/v1/ai/agents", 300000);
  return (
    <div class="page">
      <Loaded of={agents}>{(data) => data.agents.length === 0 ? <Empty command="atoll config show">No agents are configured.</Empty> : (
        <div class="grid">{data.agents.map((agent) => (
          <section class="card" key={agent.graphId}><header><h2>{printable(agent.name, 100)}</h2><State is={agent.unavailable ? "refused" : "ready"} /></header>
            <p>{printable(agent.description, 600)}</p><p class="faint"><code>{agent.graphId}</code></p>{agent.unavailable && <p class="hint">{printable(agent.unavailable, 600)}</p>}</section>
        ))}</div>
      )}</Loaded>
    </div>
  );
}

/** HealthPage shows whether the gateway can do its work. */
export function HealthPage() {
  const health = useResource<Health>("/health", 5000);
  const ready = useResource<Ready>("/ready", 5000);
  return (
    <div class="page">
      <Card title="Gateway">
        <dl class="facts">
          <div><dt>Process</dt><dd><State is={health.problem ? "failed" : "running"} /></dd></div>
          <div><dt>Can do its work</dt><dd><State is={ready.problem ? "failed" : "ready"} /></dd></div>
          <div><dt>Version</dt><dd>{health.data?.version ?? me.value?.version}</dd></div>
        </dl>
        {ready.problem && <p class="hint">{ready.problem.detail}</p>}
      </Card>
      <Card title="This machine"><Empty command="atoll doctor">What it can enforce, and how to mend what it cannot.</Empty></Card>
    </div>
  );
}
