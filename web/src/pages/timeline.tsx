import { useState } from "preact/hooks";
import { count, duration, money, printable } from "../parts/format";
import { Lines } from "../parts/lines";
import { Markdown } from "../parts/markdown";
import { Card, Empty } from "../parts/parts";
import { changeOf, countsOf, type Step, type Steps } from "./steps";

const most = 150;

/** Timeline shows the steps of a run, a part of them at a time: the last while it is under way, the first when it is over. Steps are added to in place, so known says that there are more. */
export function Timeline({ steps, begun, over }: { steps: Steps; known: number; begun: number; over: boolean }) {
  const [chosen, setChosen] = useState<number>();
  const all = steps.all;
  const from = Math.max(0, Math.min(chosen ?? (over ? 0 : all.length - most), all.length - most));
  const shown = all.slice(from, from + most);
  const last = all[all.length - 1];
  const span = Math.max(1, (last ? last.at + (last.took ?? 0) : begun) - begun);
  const pager = all.length > most && (
    <div class="row pager">
      <button type="button" disabled={from === 0} onClick={() => setChosen(Math.max(0, from - most))}>Earlier</button>
      <span class="faint">{count(from + 1)} to {count(from + shown.length)} of {count(all.length)}</span>
      <button type="button" disabled={from + most >= all.length} onClick={() => setChosen(from + most)}>Later</button>
      {chosen !== undefined && !over && <button type="button" onClick={() => setChosen(undefined)}>Follow</button>}
    </div>
  );
  return (
    <Card title="Timeline" extra={pager}>
      {all.length === 0 ? <Empty>{over ? "Nothing was recorded." : "Nothing has happened yet."}</Empty> : (
        <ol class="timeline">{shown.map((step, i) => (
          <li key={step.seq} class={step.failed ? "bad" : step.kind}>
            <span class="when" title={idle(shown[i - 1], step)}>+{duration(step.at - begun)}</span>
            <span class="span" aria-hidden="true"><i style={{ left: `${Math.min(99, ((step.at - begun) / span) * 100)}%`, width: `${Math.max(0.6, Math.min(100, ((step.took ?? 0) / span) * 100))}%` }} /></span>
            <div><One step={step} /></div>
          </li>
        ))}</ol>
      )}
      {pager && <footer>{pager}</footer>}
    </Card>
  );
}

function idle(before: Step | undefined, step: Step): string {
  return before === undefined ? "" : `${duration(step.at - before.at - (before.took ?? 0))} after the step before`;
}

function One({ step }: { step: Step }) {
  switch (step.kind) {
    case "words": return <Markdown text={step.text} />;
    case "tool": return <Tool step={step} />;
    case "usage": return <span class="faint">the program reports {money(step.microUsd ?? 0)}</span>;
    case "error": return <span class="bad">{step.error?.code}: {printable(step.error?.message ?? step.text, 2000)}</span>;
    default: return <span class={step.kind === "step" ? "faint" : ""}>{printable(step.text, 2000)}</span>;
  }
}

/** Tool shows a tool call with its arguments, its result, and what it changed in a file. */
export function Tool({ step }: { step: Step }) {
  const change = changeOf(step);
  const counts = change && countsOf(change.diff);
  return (
    <details class="tool" open={step.failed}>
      <summary><span class="tag">{printable(step.call?.name ?? "tool", 60)}</span> <span class="grow">{printable(summaryOf(step), 160)}</span>
        {counts && <span class="counts"><span class="good">+{counts.added}</span> <span class="bad">−{counts.removed}</span></span>}
        {step.failed && <span class="bad">failed</span>}<span class="faint">{step.result === undefined ? "…" : step.took !== undefined ? duration(step.took) : ""}</span></summary>
      {change ? <Lines diff text={change.diff} label={`Change of ${change.path}`} /> : <pre class="args">{printable(pretty(step.call?.args ?? ""), 8000)}</pre>}
      {step.result && <Lines text={step.result} label="Result" />}
    </details>
  );
}

/** summaryOf returns the argument that says most, on one line. */
function summaryOf(step: Step): string {
  try {
    const args = JSON.parse(step.call?.args ?? "{}") as Record<string, unknown>;
    const first = args["command"] ?? args["path"] ?? args["url"] ?? args["query"] ?? args["pattern"] ?? Object.values(args)[0];
    return typeof first === "string" ? first.split("\n")[0] ?? "" : JSON.stringify(first) ?? "";
  } catch {
    return step.call?.args ?? "";
  }
}

function pretty(args: string): string {
  try {
    return Object.entries(JSON.parse(args) as Record<string, unknown>).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n");
  } catch {
    return args;
  }
}
