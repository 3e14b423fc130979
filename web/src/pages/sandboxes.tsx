import { useState } from "preact/hooks";
import { ApiError, call, may, me } from "../api";
import type { LiveCounts, Problem, Pruned, Sandbox, SandboxMetrics, SandboxUsage, Sandboxes, Verifications } from "../api-types";
import type { Props } from "../lazy";
import { ActionProblem, useAction } from "../parts/action";
import { bytes, count, printable } from "../parts/format";
import { List } from "../parts/list";
import { Ago, Card, Confirm, Empty, Loaded, ProblemBox, State } from "../parts/parts";
import { asResource, useLive, useLiveResource, useRows } from "../live";
import { merge, useMore } from "../more";
import { useResource } from "../resource";
import { go, link } from "../router";

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
          { title: "Name", width: "minmax(180px, 2fr)", cell: (box) => box.containerName },
          { title: "Kind", wide: true, width: "80px", cell: (box) => box.kind },
          { title: "Agent", wide: true, width: "minmax(90px, 1fr)", cell: (box) => box.agentId },
          { title: "Runtime", wide: true, width: "90px", cell: (box) => box.backend },
          { title: "Image", wide: true, width: "minmax(100px, 1fr)", cell: (box) => <span>{box.image}{!box.imageMatch && <span class="tag wait" title="It was made from another image than is configured now; it is made anew once it is idle.">changes</span>}</span> },
          { title: "CPU", width: "70px", right: true, cell: (box) => percent(usage?.get(box.containerName)?.cpu) },
          { title: "Memory", wide: true, width: "90px", right: true, cell: (box) => { const used = usage?.get(box.containerName); return used ? bytes(used.memory) : ""; } },
          { title: "Processes", wide: true, width: "80px", right: true, cell: (box) => usage?.get(box.containerName)?.processes ?? "" },
          { title: "Account", wide: true, width: "100px", cell: (box) => box.account ?? "" },
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
            {data.id && data.running && may("run") && <a class="button" href={`/ui/terminal.html#${encodeURIComponent(data.id)}`} target="_blank" rel="noopener">Terminal</a>}
            {may("operator") && <Confirm label="Recreate" question={`Remove the sandbox ${data.containerName}, so that the next use makes it anew?`} onYes={() => void call("POST", `${path}/recreate`, {}).then(() => go(link("sandboxes")))} />}
          </div>
          {data.problem && <p class="stale">{data.problem}</p>}
          <dl class="facts">
            <div><dt>Kind</dt><dd>{data.kind}</dd></div>
            <div><dt>Agent</dt><dd>{data.agentId}</dd></div>
            <div><dt>Session</dt><dd>{data.sessionKey}</dd></div>
            <div><dt>Runtime</dt><dd>{data.backend}</dd></div>
            <div><dt>Image</dt><dd>{data.image}</dd></div>
            <div><dt>Made</dt><dd><Ago at={data.createdAtMs} /></dd></div>
            <div><dt>Used</dt><dd><Ago at={data.lastUsedAtMs} /></dd></div>
            {data.deadline && <div><dt>Deadline</dt><dd><Ago at={data.deadline} /></dd></div>}
            {data.workspaceDir && <div><dt>Workspace</dt><dd><code>{data.workspaceDir}</code></dd></div>}
          </dl>
          {data.drift && <Card title="Differs from its source"><p>{count((data.drift.modified?.length ?? 0) + (data.drift.deleted?.length ?? 0))} files were changed inside; {count(data.drift.stale?.length ?? 0)} are newer on the host.</p><ul>{[...(data.drift.modified ?? []), ...(data.drift.deleted ?? []).map((name) => `${name} (removed)`), ...(data.drift.stale ?? []).map((name) => `${name} (newer on the host)`)].slice(0, 50).map((name) => <li key={name}><code>{printable(name, 300)}</code></li>)}</ul></Card>}
          {data.id && data.running && <Metrics path={path} />}
          {may("operator") && <Verify path={path} />}
        </>
      )}</Loaded>
    </div>
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
