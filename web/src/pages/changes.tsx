import { useState } from "preact/hooks";
import type { Run, SyncDiff, SyncTrees } from "../api-types";
import { printable } from "../parts/format";
import { Lines } from "../parts/lines";
import { OutLink } from "../parts/markdown";
import { Card, Empty, Loaded, State } from "../parts/parts";
import { useResource } from "../resource";
import { RelayOfRun } from "./relay";
import { changeOf, countsOf, type Change, type Steps } from "./steps";

/** Changes shows what a run changed: what became of its commits, what waits at the gate, and each step's edits. */
export function Changes({ run, steps }: { run: Run; steps: Steps }) {
  const edits = steps.all.map((step) => ({ step, change: changeOf(step) })).filter((one): one is { step: (typeof steps.all)[number]; change: Change } => one.change !== undefined);
  return (
    <>
      {run.branch ? <RelayOfRun run={run.id} otherwise={<Delivered run={run} />} /> : <Delivered run={run} />}
      {run.changes && run.changes.directory !== "" && <AtGate id={run.id} />}
      <Card title="Edits, step by step">
        {edits.length === 0 ? <Empty>No tool of the agent edited a file. What commands changed is in the commits.</Empty> : edits.slice(0, 200).map(({ step, change }) => {
          const counts = countsOf(change.diff);
          return (
            <details class="tool" key={step.seq} open={edits.length <= 4}>
              <summary><span class="tag">{printable(step.call?.name ?? "", 40)}</span> <code class="grow">{printable(change.path, 300)}</code><span class="counts"><span class="good">+{counts.added}</span> <span class="bad">−{counts.removed}</span></span></summary>
              <Lines diff text={change.diff} label={`Change of ${change.path}`} />
            </details>
          );
        })}
      </Card>
    </>
  );
}

/** Delivered says what became of the commits. */
export function Delivered({ run }: { run: Run }) {
  const delivery = run.delivery;
  if (!run.branch && !delivery) return <Card title="Commits"><p class="faint">No code output was asked for: the run was given no branch.</p></Card>;
  if (!delivery) return <Card title="Commits"><p class="faint">{run.step === "done" ? "Nothing to push: it made no commits." : "It is not over yet."}</p></Card>;
  return (
    <Card title="Commits">
      <dl class="facts">
        <div><dt>Branch</dt><dd><code>{printable(delivery.branch, 200)}</code></dd></div>
        <div><dt>State</dt><dd><State is={delivery.state ?? "done"} /></dd></div>
        {delivery.pullRequest && <div><dt>Pull request</dt><dd><OutLink to={delivery.pullRequest} /></dd></div>}
      </dl>
      {delivery.error && <p class="bad">{printable(delivery.error, 2000)}</p>}
      {delivery.hint && <p class="hint">{printable(delivery.hint, 1000)}</p>}
      {delivery.note && delivery.note !== delivery.pullRequest && <p class="faint">{printable(delivery.note, 1000)}</p>}
    </Card>
  );
}

/** AtGate lists what a run on a directory changed, as it waits at the sync gate. */
function AtGate({ id }: { id: string }) {
  const query = `run=${encodeURIComponent(id)}`;
  const trees = useResource<SyncTrees>(`/api/v1/sync?${query}`);
  return (
    <Card title="At the sync gate">
      <Loaded of={trees}>{(data) => data.trees.every((tree) => tree.entries.length === 0) ? <Empty>Nothing waits.</Empty> : (
        <>{data.trees.map((tree) => tree.entries.slice(0, 500).map((entry) => <Entry key={`${tree.tree} ${entry.path}`} path={entry.path} verdict={entry.verdict} kind={entry.kind} query={`${query}&tree=${tree.tree}`} counts={{ added: entry.added ?? 0, removed: entry.removed ?? 0 }} />))}</>
      )}</Loaded>
    </Card>
  );
}

function Entry({ path, verdict, kind, query, counts }: { path: string; verdict: string; kind: string; query: string; counts: { added: number; removed: number } }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="tool" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary><State is={verdict} /> <span class="tag">{kind}</span> <code class="grow">{printable(path, 300)}</code><span class="counts"><span class="good">+{counts.added}</span> <span class="bad">−{counts.removed}</span></span></summary>
      {open && <EntryDiff query={`${query}&path=${encodeURIComponent(path)}`} path={path} />}
    </details>
  );
}

function EntryDiff({ query, path }: { query: string; path: string }) {
  const diff = useResource<SyncDiff>(`/api/v1/sync/diff?${query}`);
  return <Loaded of={diff}>{(data) => data.diff === "" ? <Empty>No text to compare.</Empty> : <Lines diff text={data.diff} label={`Change of ${path}`} />}</Loaded>;
}
