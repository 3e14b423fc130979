import { useState } from "preact/hooks";
import { ApiError, call, may, me } from "../api";
import type { Drift, DriftDiff, DriftDiffs as Diffs, LiveCounts, Problem, Pruned, Sandbox, SandboxMetrics, SandboxUsage, Sandboxes, Verifications } from "../api-types";
import type { Props } from "../lazy";
import { ActionProblem, useAction } from "../parts/action";
import { bytes, count, printable } from "../parts/format";
import { Lines } from "../parts/lines";
import { List } from "../parts/list";
import { Ago, Card, Confirm, Empty, Loaded, ProblemBox, State, TerminalLink } from "../parts/parts";
import { asResource, useLive, useLiveResource, useRows } from "../live";
import { merge, useMore } from "../more";
import { useResource } from "../resource";
import { go, link } from "../router";
import { countsOf } from "./steps";

const pageSize = 5000;

/** SandboxesPlace is the list of sandboxes, or one of them. */
export function SandboxesPlace({ id }: Props) {
  return id ? <SandboxPage key={id} id={id} /> : <SandboxesPage />;
}

/** SandboxesPage lists sandboxes, those used last first. */
function SandboxesPage() {
  const [text, setText] = useState("");
  const all = useRows<Sandbox>("sandboxes");
  const total = useLive<LiveCounts>("counts").rows?.get("all")?.sandboxes;
  const usage = useLive<SandboxUsage>("usage").rows;
  const others = useMore<Sandboxes, Sandbox>(`/api/v1/sandboxes?order=created&limit=${pageSize}`, total !== undefined && total > (all.rows?.length ?? 0) ? "" : undefined, (page) => page.sandboxes);
  return (
    <div class="page full">
      <div class="tools">
        <input type="search" aria-label="Filter" placeholder="Filter by name, agent, image" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <span class="grow" />
        {total !== undefined && <span class="faint">{count(total)} in all</span>}
        {may("operator") && !me.value?.account && <Prune />}
      </div>
      <Loaded of={asResource(all)}>{(data) => {
        const rows = merge(data, others.rows, (box) => box.containerName).sort((a, b) => b.lastUsedAtMs - a.lastUsedAtMs).filter((box) => `${box.containerName} ${box.agentId} ${box.image} ${box.account ?? ""} ${box.sessionKey}`.toLowerCase().includes(text.toLowerCase()));
        if (rows.length === 0) return <Empty command="atoll run -- echo hello">{text ? "No sandbox matches." : "No sandboxes yet."}</Empty>;
        return <List label="Sandboxes" rows={rows} keyOf={(box) => box.containerName} onEnd={() => void others.more()} address={(box) => link("sandboxes", box.id ?? box.containerName)} columns={[
          { title: "State", width: "110px", cell: (box) => <State is={box.running ? "running" : box.state || "gone"} /> },
          { title: "Name", width: "minmax(180px, 2fr)", cell: (box) => <span class="named">{box.drift && <DriftTag of={box.drift} />}<span class="tail" title={box.containerName}><bdi>{box.containerName}</bdi></span></span> },
          { title: "Kind", from: 1160, width: "80px", cell: (box) => box.kind },
          { title: "Agent", wide: true, width: "minmax(90px, 1fr)", cell: (box) => box.agentId },
          { title: "Runtime", wide: true, width: "90px", cell: (box) => box.backend },
          { title: "Image", wide: true, width: "minmax(100px, 1fr)", cell: (box) => <span>{box.image}{!box.imageMatch && <span class="tag wait" title="It was made from another image than is configured now; it is made anew once it is idle.">changes</span>}</span> },
          { title: "CPU", width: "70px", right: true, cell: (box) => percent(usage?.get(box.containerName)?.cpu) },
          { title: "Memory", wide: true, width: "90px", right: true, cell: (box) => { const used = usage?.get(box.containerName); return used ? bytes(used.memory) : ""; } },
          { title: "Processes", wide: true, width: "80px", right: true, cell: (box) => usage?.get(box.containerName)?.processes ?? "" },
          { title: "Account", from: 1160, width: "100px", cell: (box) => box.account ?? "" },
          { title: "Used", width: "90px", right: true, cell: (box) => box.inUse ? <State is="running" /> : <Ago at={box.lastUsedAtMs} /> },
        ]} />;
      }}</Loaded>
    </div>
  );
}

/** Prune removes the sandboxes that are idle or old, as the configuration says. */
function Prune() {
  const action = useAction();
  const [done, setDone] = useState("");
  const prune = async (): Promise<void> => {
    const pruned = await action.run<Pruned>("POST", "/api/v1/sandboxes/prune", {});
    if (pruned) setDone(`${count(pruned.removed.length)} removed`);
  };
  return (
    <>
      {done && <span role="status">{done}</span>}
      <Confirm label="Prune" question="Remove the sandboxes of all accounts that are idle or old, as sandbox.prune says?" onYes={() => void prune()} />
      <ActionProblem of={action} />
    </>
  );
}

function percent(cpus: number | undefined): string {
  return cpus === undefined ? "" : `${(cpus * 100).toFixed(cpus < 0.1 ? 1 : 0)} %`;
}

/** hasTerminal tells whether the caller may open a terminal in a sandbox: those of sessions and runs are for operators. */
function hasTerminal(box: Sandbox): boolean {
  if (!box.running) return false;
  return box.id ? may("run") : may("operator") && box.kind === "sandbox" && !box.imported && !box.agentId.startsWith("(");
}

/** SandboxPage shows one sandbox, what it uses and what it keeps of its promises. */
function SandboxPage({ id }: { id: string }) {
  const path = `/api/v1/sandboxes/${encodeURIComponent(id)}`;
  const box = useLiveResource<Sandbox>(path, "sandboxes");
  return (
    <div class="page">
      <Loaded of={box}>{(data) => (
        <>
          <div class="title">
            <State is={data.running ? "running" : data.state || "gone"} /><h2>{data.containerName}</h2><span class="grow" />
            {hasTerminal(data) && <TerminalLink box={data.id ?? data.containerName} />}
            {may("operator") && <Confirm label="Recreate" question={`Remove the sandbox ${data.containerName}, so that the next use makes it anew?`} onYes={() => void call("POST", `${path}/recreate`, {}).then(() => go(link("sandboxes")))} />}
          </div>
          {data.problem && <p class="stale">{data.problem}</p>}
          <dl class="facts">
            <div><dt>Kind</dt><dd>{data.kind}</dd></div>
            <div><dt>Agent</dt><dd>{data.agentId}</dd></div>
            <div class="wide"><dt>Session</dt><dd>{data.sessionKey}</dd></div>
            <div><dt>Runtime</dt><dd>{data.backend}</dd></div>
            <div><dt>Image</dt><dd>{data.image}</dd></div>
            <div><dt>Made</dt><dd><Ago at={data.createdAtMs} /></dd></div>
            <div><dt>Used</dt><dd><Ago at={data.lastUsedAtMs} /></dd></div>
            {data.lastSavedAtMs && <div><dt>Workspace last saved</dt><dd><Ago at={data.lastSavedAtMs} /></dd></div>}
            {data.deadline && <div><dt>Deadline</dt><dd><Ago at={data.deadline} /></dd></div>}
            {data.workspaceDir && <div class="wide"><dt>Workspace</dt><dd><code>{data.workspaceDir}</code></dd></div>}
          </dl>
          {data.drift && <DriftDiffs path={path} />}
          {data.id && data.running && <Metrics path={path} />}
          {may("operator") && <Verify path={path} />}
        </>
      )}</Loaded>
    </div>
  );
}

/** DriftTag marks a sandbox whose copy of the behaviour files differs from the agent's; the files are in its title. */
function DriftTag({ of: drift }: { of: Drift }) {
  const files = [...(drift.modified ?? []), ...(drift.deleted ?? []).map((name) => `${name} (removed)`), ...(drift.stale ?? []).map((name) => `${name} (newer on the host)`)];
  return <span class="tag wait" title={printable(files.join(", "), 600)}>{count(new Set([...(drift.modified ?? []), ...(drift.deleted ?? []), ...(drift.stale ?? [])]).size)} drifted</span>;
}

/** DriftDiffs shows what differs in the behaviour files of a copy. */
function DriftDiffs({ path }: { path: string }) {
  const diffs = useResource<Diffs>(`${path}/drift`);
  return (
    <Card title="Differs from its source">
      <p class="faint">From the agent's files as they are now to the copy in the sandbox. Neither reaches the other by itself; Recreate brings the copy up to date.</p>
      <Loaded of={diffs}>{(data) => data.files.length === 0 ? <Empty>Nothing differs any more.</Empty> : <>{data.files.map((file) => <DriftFile key={file.path} file={file} open={data.files.length <= 3} />)}</>}</Loaded>
    </Card>
  );
}

function DriftFile({ file, open }: { file: DriftDiff; open: boolean }) {
  const diff = file.diff ?? "";
  const counts = countsOf(diff);
  const why = [file.modified && "written inside", file.deleted && "removed inside", file.stale && "newer on the host"].filter(Boolean).join(", ");
  return (
    <details class="tool" open={open}>
      <summary><code>{printable(file.path, 300)}</code> <span class="grow faint">{why}</span><span class="counts"><span class="good">+{counts.added}</span> <span class="bad">−{counts.removed}</span></span></summary>
      {diff === "" ? <p class="faint">{file.note ? printable(file.note, 600) : "The copy is as the source is now."}</p> : <Lines diff text={diff} label={`Differences of ${file.path}`} />}
    </details>
  );
}

function Metrics({ path }: { path: string }) {
  const metrics = useResource<SandboxMetrics>(`${path}/metrics`, 1000);
  return (
    <Card title="Uses">
      <Loaded of={metrics}>{(data) => (
        <div class="meters">
          <Meter title="Memory" value={data.memoryBytes} most={data.memoryLimitBytes} shown={bytes} />
          <Meter title="Processes" value={data.processes} most={data.processesLimit} shown={count} />
          <Meter title="Workspace" value={data.workspaceBytes} most={data.workspaceLimitBytes} shown={bytes} />
          <div class="meter"><span>CPU time</span><b>{(data.cpuMs / 1000).toFixed(1)} s</b></div>
        </div>
      )}</Loaded>
    </Card>
  );
}

function Meter({ title, value, most, shown }: { title: string; value: number; most?: number | undefined; shown: (n: number) => string }) {
  return <div class="meter"><span>{title}</span><b>{shown(value)}{most ? ` of ${shown(most)}` : ""}</b>{most ? <meter min={0} max={most} value={value} aria-label={title} /> : null}</div>;
}

/** Verify tries the promises of the sandbox from inside. */
function Verify({ path }: { path: string }) {
  const [result, setResult] = useState<Verifications>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      setResult(await call<Verifications>("POST", `${path}/verify`, {}));
    } catch (error) {
      if (error instanceof ApiError) setProblem(error.problem);
    }
    setBusy(false);
  };
  return (
    <Card title="Isolation" extra={<button type="button" disabled={busy} onClick={() => void run()}>{busy ? "Trying…" : "Verify now"}</button>}>
      {problem && <ProblemBox problem={problem} />}
      {!result && !problem && <Empty>Every promise of the sandbox is tried from inside.</Empty>}
      {result?.verified.map((one) => (
        <table key={one.sandbox} class="plain">
          <thead><tr><th>Ring</th><th>Promise</th><th>Found</th><th>Verdict</th></tr></thead>
          <tbody>{one.checks.map((check) => <tr key={check.name}><td>{check.ring}</td><td>{check.name}: {check.promised}</td><td>{check.found}</td><td><State is={check.status} /></td></tr>)}</tbody>
        </table>
      ))}
    </Card>
  );
}
