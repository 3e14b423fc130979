import type { ComponentChildren } from "preact";
import type { ModelCalls, Run } from "../api-types";
import { gatewayTime } from "../clock";
import { bytes, count, duration, money, printable } from "../parts/format";
import { Lines } from "../parts/lines";
import { Ago, Card, Empty, Loaded, State } from "../parts/parts";
import { useLiveResource } from "../live";
import { useResource, type Resource } from "../resource";
import { link, route } from "../router";
import { stateOf, tookOf } from "../runs";

/** ComparePage shows two runs side by side; what differs is marked. */
export function ComparePage() {
  const query = route.value.query;
  const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
  if (a === "" || b === "") return <Empty>Mark two runs of the list with x, then compare them.</Empty>;
  return <Compared a={a} b={b} />;
}

function useRun(id: string): [Resource<Run>, Resource<ModelCalls>] {
  const path = `/api/v1/ai/runs/${encodeURIComponent(id)}`;
  return [useLiveResource<Run>(path, "runs"), useResource<ModelCalls>(`${path}/calls`)];
}

const rows: [string, (run: Run) => string, (run: Run) => ComponentChildren][] = [
  ["State", stateOf, (run) => <State is={stateOf(run)} />],
  ["Agent", (run) => run.graphId, (run) => run.graphId],
  ["Model", (run) => run.model, (run) => run.model || "–"],
  ["Task", (run) => run.task ?? "", (run) => printable(run.task ?? "", 400)],
  ["Branch", (run) => run.branch ?? "", (run) => printable(run.branch ?? "–", 200)],
  ["Image", (run) => run.image ?? "", (run) => run.image ?? "–"],
  ["Error", (run) => run.error?.code ?? "", (run) => run.error ? <span class="bad">{run.error.code}: {printable(run.error.message, 300)}</span> : "–"],
  ["Begun", () => "", (run) => <Ago at={run.created} />],
];

const figures: [string, (run: Run) => number, (n: number) => string][] = [
  ["Took", (run) => tookOf(run, gatewayTime()), duration],
  ["Cost", (run) => run.bill.microUsd, money],
  ["Calls", (run) => run.bill.calls, count],
  ["Tokens in", (run) => run.bill.inputTokens, count],
  ["Tokens out", (run) => run.bill.outputTokens, count],
  ["Memory", (run) => run.peakMemory ?? 0, bytes],
];

function Compared({ a, b }: { a: string; b: string }) {
  const [one, oneCalls] = useRun(a);
  const [two, twoCalls] = useRun(b);
  return (
    <div class="page">
      <Loaded of={one}>{(first) => <Loaded of={two}>{(second) => (
        <>
          <Card title="Two runs">
            <table class="plain compare">
              <thead><tr><td /><th><a href={link("runs", a)}>{a}</a></th><th><a href={link("runs", b)}>{b}</a></th><th class="right">Change</th></tr></thead>
              <tbody>
                {rows.map(([title, of, shown]) => <tr key={title} class={of(first) === of(second) ? "" : "differs"}><th scope="row">{title}</th><td>{shown(first)}</td><td>{shown(second)}</td><td /></tr>)}
                {figures.map(([title, of, shown]) => <tr key={title} class={of(first) === of(second) ? "" : "differs"}><th scope="row">{title}</th><td>{shown(of(first))}</td><td>{shown(of(second))}</td><td class="right">{change(of(first), of(second))}</td></tr>)}
                <tr><th scope="row">Models asked</th><td>{asked(oneCalls.data)}</td><td>{asked(twoCalls.data)}</td><td /></tr>
              </tbody>
            </table>
          </Card>
          <div class="two">
            {[first, second].map((run) => <Card key={run.id} title="Answer">{run.text ? <Lines text={run.text} label={`Answer of ${run.id}`} /> : <Empty>No answer.</Empty>}</Card>)}
          </div>
        </>
      )}</Loaded>}</Loaded>
    </div>
  );
}

function change(from: number, to: number): string {
  if (from === to) return "";
  if (from === 0) return "new";
  const percent = Math.round(((to - from) / from) * 100);
  return `${percent > 0 ? "+" : ""}${percent} %`;
}

function asked(calls: ModelCalls | undefined): string {
  return calls === undefined ? "…" : [...new Set(calls.calls.map((one) => one.model))].join(", ") || "–";
}
