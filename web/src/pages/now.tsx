import type { AccountCost, Approval, LiveCounts, LiveHealth, Run } from "../api-types";
import { now } from "../clock";
import { asResource, useLive, useRows } from "../live";
import { duration, money, printable } from "../parts/format";
import { Ago, Card, Empty, Id, Loaded, State } from "../parts/parts";
import { useRowKeys } from "../parts/rows";
import { link } from "../router";
import { failures, stateOf, tookOf } from "../runs";

const day = 24 * 3600 * 1000;

/** NowPage shows what runs, what waits for a person, what failed and what was spent. */
export function NowPage() {
  const latest = useRows<Run>("runs");
  const approvals = useRows<Approval>("approvals");
  const sandboxes = useLive<LiveCounts>("counts").rows?.get("all")?.sandboxes;
  const costs = useRows<AccountCost>("cost").rows;
  const health = useLive<LiveHealth>("health").rows?.get("gateway");
  const rows = useRowKeys();
  const newest = latest.rows?.sort((a, b) => b.created.localeCompare(a.created));
  const open = newest?.filter((run) => run.step !== "done");
  const failed = newest?.filter((run) => run.error && now.value - Date.parse(run.created) < day) ?? [];
  const waiting = approvals.rows?.length;
  const spent = costs?.reduce((sum, account) => sum + account.microUSD, 0);
  return (
    <div class="page" ref={rows}>
      <div class="figures">
        <Figure title="running" value={open?.length} to={link("runs")} />
        <Figure title="waiting for you" value={waiting} to={link("approvals")} tone={waiting ? "wait" : ""} />
        <Figure title="failed in 24 h" value={newest ? failed.length : undefined} to={link("runs", "", { state: "failed" })} tone={failed.length ? "bad" : ""} />
        <Figure title="sandboxes" value={sandboxes} to={link("sandboxes")} />
        <Figure title="spent today" value={spent === undefined ? undefined : money(spent)} to={link("cost")} />
        <Figure title="gateway" value={health && (health.ready ? "ready" : "not ready")} to={link("health")} tone={health?.ready === false ? "bad" : ""} />
      </div>
      <Card title="Runs under way">
        <Loaded of={asResource({ rows: open, problem: latest.problem })}>{(data) => data.length === 0 ? <Empty command={'atoll runs start -m "…"'}>Nothing runs.</Empty> : (
          <ul class="rows">{data.map((run) => (
            <li key={run.id}><a href={link("runs", run.id)}><State is={stateOf(run)} /><span class="grow">{printable(run.task ?? "", 200)}</span><span class="tag">{run.graphId}</span><Id value={run.id} /><span>{duration(tookOf(run, now.value))}</span></a></li>
          ))}</ul>
        )}</Loaded>
      </Card>
      <Card title="Waiting for a person">
        <Loaded of={asResource(approvals)}>{(data) => data.length === 0 ? <Empty>Nothing waits.</Empty> : (
          <ul class="rows">{data.map((question) => (
            <li key={question.id}><a href={link("approvals", question.id)}><State is="waiting" /><span class="tag">{question.kind}</span><span class="grow">{printable(question.summary, 200)}</span><Ago at={question.created} /></a></li>
          ))}</ul>
        )}</Loaded>
      </Card>
      <Card title="Failed in the last 24 hours">
        <Loaded of={asResource(latest)}>{() => failed.length === 0 ? <Empty>Nothing failed.</Empty> : (
          <ul class="rows">{failed.slice(0, 20).map((run) => (
            <li key={run.id}><a href={link("runs", run.id)}><State is="failed" /><span class="tag" title={failures[run.error?.code ?? ""]}>{run.error?.code}</span><span class="grow">{printable(run.task || run.error?.message || run.id, 200)}</span><Ago at={run.created} /></a></li>
          ))}</ul>
        )}</Loaded>
      </Card>
    </div>
  );
}

function Figure({ title, value, to, tone = "" }: { title: string; value: number | string | undefined; to: string; tone?: string }) {
  return <a class={`figure ${tone}`} href={to}><b>{value ?? "–"}</b><span>{title}</span></a>;
}
