import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, may } from "../api";
import type { Audit, History, ModelCalls, Problem, Run } from "../api-types";
import { now } from "../clock";
import { subscribe, useLiveResource } from "../live";
import { bytes, count, duration, money, printable } from "../parts/format";
import { Lines } from "../parts/lines";
import { List } from "../parts/list";
import { OutLink } from "../parts/markdown";
import { Ago, Card, Confirm, Empty, Id, Loaded, State, TerminalLink } from "../parts/parts";
import { Panel, Tabs, tabOf } from "../parts/tabs";
import { type Resource, useResource } from "../resource";
import { link } from "../router";
import { failures, stateOf, tookOf } from "../runs";
import { Changes } from "./changes";
import { Steps, stepsOfTask } from "./steps";
import { Timeline } from "./timeline";

const tabs = { timeline: "Timeline", changes: "Changes", calls: "Calls", audit: "Audit", raw: "Raw" };

/** RunPage shows one run: what it was, what happens in it, what came of it. */
export function RunPage({ id }: { id: string }) {
  const path = `/api/v1/ai/runs/${encodeURIComponent(id)}`;
  const { run, steps, known } = useRun(id);
  const tab = tabOf(tabs);
  return (
    <div class="page">
      <Loaded of={run}>{(data) => (
        <>
          <Head run={data} onCancel={() => void call("DELETE", path)} />
          <Tabs page="runs" id={id} tabs={tabs} at={tab} />
          <Panel tab={tab}>
            {tab === "timeline" && <><Answer run={data} />{data.session && known === 0 ? <TaskTimeline run={data} session={data.session} /> : <Timeline steps={steps} known={known} begun={Date.parse(data.created)} over={data.step === "done"} />}</>}
            {tab === "changes" && <Changes run={data} steps={steps} />}
            {tab === "calls" && <Calls path={path} />}
            {tab === "audit" && <RunAudit id={data.id} />}
            {tab === "raw" && <Card title="As the interface answers"><Lines text={JSON.stringify(data, null, 2)} label="JSON" /></Card>}
          </Panel>
        </>
      )}</Loaded>
    </div>
  );
}

function Head({ run, onCancel }: { run: Run; onCancel: () => void }) {
  return (
    <>
      <div class="title">
        <State is={stateOf(run)} /><h2>{run.graphId}</h2><Id value={run.id} length={26} />
        <span class="grow" />
        {run.step === "done" && may("run") && <a class="button" href={link("runs", "", { start: "1", task: (run.task ?? "").slice(0, 1000) })}>Again</a>}
        {run.step === "executing" && run.sandbox && may("operator") && <TerminalLink box={run.sandbox} />}
        {run.step !== "done" && may("run") && <Confirm label="Cancel" question={`Cancel the run ${run.id}?`} onYes={onCancel} />}
      </div>
      {run.error && <div class="problem" role="alert"><strong>{run.error.code}</strong><p>{printable(run.error.message, 2000)}</p>{failures[run.error.code] && <p class="hint">{failures[run.error.code]}</p>}</div>}
      {run.waitingFor && <p class="stale" role="status">It waits for {printable(run.waitingFor, 300)}{run.waitingFor === "approval" && <>: <a href={link("approvals", "", { run: run.id })}>answer it</a></>}.</p>}
      {run.task && <p class="task">{printable(run.task, 4096)}</p>}
      <dl class="facts">
        <Fact title="Begun"><Ago at={run.created} /></Fact>
        <Fact title="Took">{duration(tookOf(run, now.value))}</Fact>
        <Fact title="Cost"><span class={run.bill.provisional ? "provisional" : ""}>{money(run.bill.microUsd)}</span> <small class="faint">{run.bill.provisional ? "provisional" : run.bill.source}</small></Fact>
        <Fact title="Model">{run.model || "–"}</Fact>
        <Fact title="Calls">{count(run.bill.calls)}</Fact>
        <Fact title="Tokens">{count(run.bill.inputTokens)} in, {count(run.bill.outputTokens)} out</Fact>
        {run.told?.usage && <Fact title="Told by the program"><span class="faint">{count(run.told.usage.total)} tokens</span></Fact>}
        {run.peakMemory ? <Fact title="Memory">{bytes(run.peakMemory)} at most</Fact> : null}
        {run.sandbox && <Fact wide title="Sandbox"><a href={link("sandboxes", run.sandbox)}>{run.sandbox}</a></Fact>}
        {run.account && <Fact title="Account">{run.account}</Fact>}
        {run.session && <Fact wide title="Session"><a href={link("sessions", run.session)}>{printable(run.session, 200)}</a></Fact>}
        {run.branch && <Fact title="Branch"><a href={link("code", run.branch)}>{printable(run.branch, 200)}</a></Fact>}
        {run.pullRequest && <Fact wide title="Pull request"><OutLink to={run.pullRequest} /></Fact>}
        {run.trace && <Fact title="Trace"><Id value={run.trace} />{run.traceUrl && <> <ToolLink to={run.traceUrl} /></>}</Fact>}
      </dl>
      {run.warnings && run.warnings.length > 0 && <Card title="Warnings"><ul>{run.warnings.map((warning) => <li key={warning}>{printable(warning, 1000)}</li>)}</ul></Card>}
    </>
  );
}

/** ToolLink is a link into the operator's own tool, as the configuration names it. */
function ToolLink({ to }: { to: string }) {
  const url = URL.parse(to);
  if (url?.protocol !== "https:" && url?.protocol !== "http:") return null;
  return <a href={url.href} rel="noopener noreferrer" target="_blank">open <span class="faint">({url.host})</span></a>;
}

function Fact({ title, children, wide = false }: { title: string; children: ComponentChildren; wide?: boolean }) {
  return <div class={wide ? "wide" : ""}><dt>{title}</dt><dd>{children}</dd></div>;
}

function Answer({ run }: { run: Run }) {
  return run.text ? <Card title="Answer"><Lines text={run.text} label="Answer" /></Card> : null;
}

/** TaskTimeline shows the steps of a run that is a task of a session, as the session's transcript has them. */
function TaskTimeline({ run, session }: { run: Run; session: string }) {
  const history = useResource<History>(`/api/v1/sessions/${encodeURIComponent(session)}/history?limit=1000`);
  const over = run.step === "done";
  return (
    <Loaded of={history}>{(data) => {
      const steps = stepsOfTask(data, Date.parse(run.created), over ? Date.parse(run.ended ?? run.created) : now.value);
      return (
        <>
          <p class="faint">It is a task of the session <a href={link("sessions", session)}><code>{printable(session, 200)}</code></a>.</p>
          <Timeline steps={steps} known={steps.all.length} begun={Date.parse(run.created)} over={over} />
        </>
      );
    }}</Loaded>
  );
}

/** Calls lists the calls of models of a run. */
function Calls({ path }: { path: string }) {
  const calls = useLiveResource<ModelCalls>(`${path}/calls`, "runs");
  return (
    <Loaded of={calls}>{(data) => data.calls.length === 0 ? <Empty>No model was asked.</Empty> : (
      <div class="tall"><List label="Calls of models" rows={data.calls} keyOf={(one) => one.id} columns={[
        { title: "Status", width: "80px", cell: (one) => <State is={one.crashed ? "failed" : one.status < 400 ? "ok" : String(one.status)} /> },
        { title: "Model", width: "minmax(100px, 1fr)", cell: (one) => one.model === one.modelAsked ? one.model : `${one.model} for ${one.modelAsked}` },
        { title: "In", width: "80px", right: true, cell: (one) => count(one.inputTokens) },
        { title: "Cached", width: "80px", right: true, wide: true, cell: (one) => count(one.cachedInputTokens) },
        { title: "Out", width: "80px", right: true, cell: (one) => count(one.outputTokens) },
        { title: "Thinking", width: "80px", right: true, wide: true, cell: (one) => count(one.reasoningTokens) },
        { title: "Cost", width: "90px", right: true, cell: (one) => <span class={one.billed ? "" : "provisional"} title={one.priced ? one.billed ? "billed by the provider" : "our own price, provisional" : "nobody knows its price"}>{one.priced ? money(one.microUsd) : "unpriced"}</span> },
        { title: "When", width: "90px", right: true, wide: true, cell: (one) => <Ago at={one.at} /> },
      ]} /></div>
    )}</Loaded>
  );
}

/** RunAudit shows what the audit log says of a run. */
function RunAudit({ id }: { id: string }) {
  const audit = useLiveResource<Audit>(`/api/v1/audit?limit=500&run=${encodeURIComponent(id)}`, "runs");
  return (
    <Loaded of={audit}>{(data) => data.records.length === 0 ? <Empty>No record.</Empty> : (
      <Card title="Records"><Lines text={(data.records as unknown[]).map((record) => JSON.stringify(record)).join("\n")} label="Records of the audit log" /></Card>
    )}</Loaded>
  );
}

const mostEvents = 200000;

/** useRun follows a run and its events and returns its steps, which are added to, and how many events they are of. */
function useRun(id: string): { run: Resource<Run>; steps: Steps; known: number } {
  const [state, setState] = useState<{ run?: Run; problem?: Problem; steps: Steps; count: number }>({ steps: new Steps(), count: 0 });
  useEffect(() => {
    let steps = new Steps();
    let last = 0;
    return subscribe(`run:${id}`, (message) => {
      if (message.type === "snapshot") {
        steps = new Steps();
        last = 0;
      }
      const fresh = (message.events ?? []).filter((event) => event.seq > last && event.seq <= mostEvents);
      last = fresh[fresh.length - 1]?.seq ?? last;
      steps.add(fresh);
      const run = message.rows?.[0] as Run | undefined;
      setState((old) => ({ ...(run ?? old.run ? { run: (run ?? old.run) as Run } : {}), ...(message.problem ? { problem: message.problem } : {}), steps, count: old.count + fresh.length }));
    });
  }, [id]);
  return { run: { data: state.run, problem: state.problem, stale: state.problem !== undefined && state.run !== undefined, reload: () => undefined }, steps: state.steps, known: state.count };
}
