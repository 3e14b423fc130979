import type { Approvals, Costs, Ready, Runs, Sandboxes } from "../api-types";
import { duration, money, printable } from "../parts/format";
import { Ago, Card, Empty, Id, Loaded, State, now } from "../parts/parts";
import { useResource } from "../resource";
import { useRowKeys } from "../parts/rows";
import { link } from "../router";
import { failures, stateOf, tookOf } from "../runs";

const day = 24 * 3600 * 1000;

/** NowPage shows what runs, what waits for a person, what failed and what was spent. */
export function NowPage() {
  const open = useResource<Runs>("/api/v1/ai/runs?open=true&limit=50&fields=summary", 3000);
  const recent = useResource<Runs>("/api/v1/ai/runs?state=failed&limit=50&fields=summary", 6000);
  const approvals = useResource<Approvals>("/api/v1/approvals", 3000);
  const sandboxes = useResource<Sandboxes>("/api/v1/sandboxes?limit=200", 6000);
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  const costs = useResource<Costs>(`/api/v1/costs?since=${encodeURIComponent(midnight.toISOString())}`, 30000);
  const ready = useResource<Ready>("/ready", 15000);
  const rows = useRowKeys();
  const spent = costs.data?.accounts.reduce((sum, account) => sum + account.microUSD, 0);
  const failed = recent.data?.runs.filter((run) => run.error && now.value - Date.parse(run.created) < day) ?? [];
  return (
    <div class="page" ref={rows}>
      <div class="figures">
        <Figure title="running" value={open.data?.runs.length} to={link("runs")} />
        <Figure title="waiting for you" value={approvals.data?.approvals.length} to={link("approvals")} tone={approvals.data?.approvals.length ? "wait" : ""} />
        <Figure title="failed in 24 h" value={recent.data ? failed.length : undefined} to={link("runs", "", { state: "failed" })} tone={failed.length ? "bad" : ""} />
        <Figure title="sandboxes" value={sandboxes.data?.total} to={link("sandboxes")} />
        <Figure title="spent today" value={spent === undefined ? undefined : money(spent)} to={link("cost")} />
        <Figure title="gateway" value={ready.problem ? "not ready" : ready.data ? "ready" : undefined} to={link("health")} tone={ready.problem ? "bad" : ""} />
      </div>
      <Card title="Runs under way">
        <Loaded of={open}>{(data) => data.runs.length === 0 ? <Empty command={'atoll runs start -m "…"'}>Nothing runs.</Empty> : (
          <ul class="rows">{data.runs.map((run) => (
            <li key={run.id}><a href={link("runs", run.id)}><State is={stateOf(run)} /><span class="grow">{printable(run.task ?? "", 200)}</span><span class="tag">{run.graphId}</span><Id value={run.id} /><span>{duration(tookOf(run, now.value))}</span></a></li>
          ))}</ul>
        )}</Loaded>
      </Card>
      <Card title="Waiting for a person">
        <Loaded of={approvals}>{(data) => data.approvals.length === 0 ? <Empty>Nothing waits.</Empty> : (
          <ul class="rows">{data.approvals.map((question) => (
            <li key={question.id}><a href={link("approvals", question.id)}><State is="waiting" /><span class="tag">{question.kind}</span><span class="grow">{printable(question.summary, 200)}</span><Ago at={question.created} /></a></li>
          ))}</ul>
        )}</Loaded>
      </Card>
      <Card title="Failed in the last 24 hours">
        <Loaded of={recent}>{() => failed.length === 0 ? <Empty>Nothing failed.</Empty> : (
          <ul class="rows">{failed.slice(0, 20).map((run) => (
            <li key={run.id}><a href={link("runs", run.id)}><State is="failed" /><span class="tag">{run.error?.code}</span><span class="grow">{printable(failures[run.error?.code ?? ""] ?? run.error?.message ?? "", 200)}</span><Ago at={run.created} /></a></li>
          ))}</ul>
        )}</Loaded>
      </Card>
    </div>
  );
}

function Figure({ title, value, to, tone = "" }: { title: string; value: number | string | undefined; to: string; tone?: string }) {
  return <a class={`figure ${tone}`} href={to}><b>{value ?? "–"}</b><span>{title}</span></a>;
}
