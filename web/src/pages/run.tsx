import { useEffect, useState } from "preact/hooks";
import { call, events, may } from "../api";
import type { Event as RunEvent, Run } from "../api-types";
import { bytes, count, duration, money, printable } from "../parts/format";
import { Ago, Card, Confirm, Empty, Id, Loaded, State, now } from "../parts/parts";
import { useResource } from "../resource";
import { link } from "../router";
import { failures, stateOf, tookOf } from "../runs";

/** RunPage shows one run: what it was, what happens in it, what came of it. */
export function RunPage({ id }: { id: string }) {
  const run = useResource<Run>(`/api/v1/ai/runs/${encodeURIComponent(id)}`, 3000);
  const over = run.data?.step === "done";
  return (
    <div class="page">
      <Loaded of={run}>{(data) => (
        <>
          <div class="title">
            <State is={stateOf(data)} /><h2>{data.graphId}</h2><Id value={data.id} length={26} />
            <span class="grow" />
            {!over && may("run") && <Confirm label="Cancel" question={`Cancel the run ${data.id}?`} onYes={() => void call("DELETE", `/api/v1/ai/runs/${encodeURIComponent(id)}`).then(run.reload)} />}
          </div>
          {data.error && <div class="problem" role="alert"><strong>{data.error.code}</strong><p>{printable(data.error.message, 2000)}</p>{failures[data.error.code] && <p class="hint">{failures[data.error.code]}</p>}</div>}
          {data.waitingFor && <p class="stale" role="status">It waits for {printable(data.waitingFor, 300)}.</p>}
          {data.task && <Card title="Task"><pre class="words">{printable(data.task, 4096)}</pre></Card>}
          <dl class="facts">
            <Fact title="Begun"><Ago at={data.created} /></Fact>
            <Fact title="Took">{duration(tookOf(data, now.value))}</Fact>
            <Fact title="Cost"><span class={data.bill.provisional ? "provisional" : ""}>{money(data.bill.microUsd)}</span> {data.bill.provisional && <small>provisional</small>}</Fact>
            <Fact title="Model">{data.model ?? "–"}</Fact>
            <Fact title="Calls">{count(data.bill.calls)}</Fact>
            <Fact title="Tokens">{count(data.bill.inputTokens)} in, {count(data.bill.outputTokens)} out</Fact>
            {data.peakMemory ? <Fact title="Memory">{bytes(data.peakMemory)} at most</Fact> : null}
            {data.sandbox && <Fact title="Sandbox"><a href={link("sandboxes", data.sandbox)}>{data.sandbox}</a></Fact>}
            {data.account && <Fact title="Account">{data.account}</Fact>}
            {data.branch && <Fact title="Branch">{printable(data.branch, 200)}</Fact>}
            {data.pullRequest && <Fact title="Pull request"><OutLink to={data.pullRequest} /></Fact>}
            {data.trace && <Fact title="Trace"><Id value={data.trace} /></Fact>}
          </dl>
          {data.warnings && data.warnings.length > 0 && <Card title="Warnings"><ul>{data.warnings.map((warning) => <li key={warning}>{printable(warning, 1000)}</li>)}</ul></Card>}
          {data.text && <Card title="Answer"><pre class="words">{printable(data.text)}</pre></Card>}
          <Timeline id={data.id} begun={Date.parse(data.created)} />
        </>
      )}</Loaded>
    </div>
  );
}

function Fact({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return <div><dt>{title}</dt><dd>{children}</dd></div>;
}

/** OutLink is a link to another site, with its host shown; anything but https is text. */
function OutLink({ to }: { to: string }) {
  const url = URL.parse(to);
  if (url?.protocol !== "https:") return <span>{printable(to, 300)}</span>;
  return <a href={url.href} rel="noopener noreferrer" target="_blank">{printable(`${url.host}${url.pathname}`, 120)}</a>;
}

const mostEvents = 2000;

/** Timeline shows the events of a run, those to come as they happen. */
function Timeline({ id, begun }: { id: string; begun: number }) {
  const [all, setAll] = useState<RunEvent[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    setAll([]);
    void follow(id, abort.signal, (batch) => setAll((old) => [...old, ...batch].slice(-mostEvents)));
    return () => abort.abort();
  }, [id]);
  const steps = join(all);
  return (
    <Card title="Timeline">
      {steps.length === 0 ? <Empty>Nothing has happened yet.</Empty> : (
        <ol class="timeline">{steps.map((event) => <li key={event.seq} class={event.isError || event.type === "error" ? "bad" : event.type}>
          <span class="when">+{duration(Date.parse(event.at) - begun)}</span>
          <Step event={event} />
        </li>)}</ol>
      )}
    </Card>
  );
}

/** follow reads events until the run is over, and goes on after a lost connection. */
async function follow(id: string, abort: AbortSignal, add: (batch: RunEvent[]) => void): Promise<void> {
  let last = 0;
  let batch: RunEvent[] = [];
  const flush = (): void => {
    if (batch.length > 0 && !abort.aborted) add(batch);
    batch = [];
  };
  const timer = setInterval(flush, 100);
  try {
    for (let wait = 500; !abort.aborted; wait = Math.min(8000, wait * 2)) {
      try {
        for await (const { event, data } of events(`/api/v1/ai/runs/${encodeURIComponent(id)}/events?after=${last}`, abort)) {
          if (event === "receipt") return;
          const one = data as RunEvent;
          if (typeof one.seq !== "number" || one.seq <= last) continue;
          last = one.seq;
          batch.push(one);
          wait = 500;
        }
      } catch {
        if (abort.aborted) return;
      }
      await new Promise((done) => setTimeout(done, wait + Math.random() * 300));
    }
  } finally {
    clearInterval(timer);
    flush();
  }
}

/** join puts the words of one answer together. */
function join(all: RunEvent[]): RunEvent[] {
  const steps: RunEvent[] = [];
  for (const event of all) {
    const last = steps[steps.length - 1];
    if (event.type === "text_delta" && last?.type === "text_delta") steps[steps.length - 1] = { ...last, text: (last.text ?? "") + (event.text ?? "") };
    else steps.push(event);
  }
  return steps;
}

function Step({ event }: { event: RunEvent }) {
  switch (event.type) {
    case "text_delta":
      return <pre class="words">{printable(event.text ?? "")}</pre>;
    case "tool_call":
      return <details open><summary><span class="tag">{printable(event.call?.name ?? "tool", 60)}</span></summary><pre>{printable(event.call?.args ?? "", 8000)}</pre></details>;
    case "tool_result":
      return <details><summary>{event.isError ? "failed" : "result"}{event.tookMs !== undefined && ` after ${duration(event.tookMs)}`}</summary><pre>{printable(event.text ?? "", 20000)}</pre></details>;
    case "usage_report":
      return <span class="faint">the program reports {money(event.microUsd ?? 0)}</span>;
    case "step":
      return <span>{event.step}</span>;
    case "error":
      return <span class="bad">{event.error?.code}: {printable(event.error?.message ?? event.text ?? "", 2000)}</span>;
    default:
      return <span class="faint">{event.type}{event.text && `: ${printable(event.text, 2000)}`}</span>;
  }
}
