import type { ComponentChildren } from "preact";
import { may } from "../api";
import type { RelayRecord, RelayRecords } from "../api-types";
import { useLiveResource } from "../live";
import { ActionProblem, useAction } from "../parts/action";
import { Findings } from "../parts/evidence";
import { count, printable } from "../parts/format";
import { OutLink } from "../parts/markdown";
import { Ago, Card, Confirm, Empty, Loaded, State } from "../parts/parts";
import { link } from "../router";
import { PatchOfRun } from "./patch";

/** RelayCard lists what became of the commits of runs, and goes on with pushes that were interrupted. */
export function RelayCard() {
  const records = useLiveResource<RelayRecords>("/api/v1/relay?limit=50", "runs");
  const action = useAction();
  const retry = may("operator") && <button type="button" disabled={action.busy} onClick={() => void action.run("POST", "/api/v1/relay/retry", {}).then(records.reload)}>Go on with interrupted pushes</button>;
  return (
    <Card title="What the relay did" extra={retry}>
      <ActionProblem of={action} />
      <Loaded of={records}>{(data) => data.relays.length === 0 ? <Empty>Nothing left yet.</Empty> : (
        <table class="plain">
          <thead><tr><th>State</th><th>Branch</th><th class="right">Commits</th><th class="right">Files</th><th>Found</th><th>Pull request</th><th class="right">Changed</th></tr></thead>
          <tbody>{data.relays.map((record) => (
            <tr key={record.run}><td><State is={record.trouble ? "failed" : record.state} /></td><td><a href={link("runs", record.run, { tab: "changes" })}><code>{printable(record.branch, 120)}</code></a></td><td class="right">{count(record.commits?.length ?? 0)}</td><td class="right">{count(record.files)}</td>
              <td>{record.findings?.length ? <span class="wait">{printable([...new Set(record.findings.map((finding) => finding.rule))].join(", "), 100)}</span> : <span class="faint">nothing</span>}</td><td>{record.pullRequest ? <OutLink to={record.pullRequest} /> : ""}</td><td class="right"><Ago at={record.changed} /></td></tr>
          ))}</tbody>
        </table>
      )}</Loaded>
    </Card>
  );
}

/** RelayOfRun shows what became of the commits of one run, or something else if the relay knows of none; what was kept can be pushed. */
export function RelayOfRun({ run, otherwise }: { run: string; otherwise: ComponentChildren }) {
  const path = `/api/v1/relay/${encodeURIComponent(run)}`;
  const record = useLiveResource<RelayRecord>(path, "runs");
  if (record.data === undefined && (record.problem?.status === 404 || record.problem?.status === 501)) return <>{otherwise}</>;
  return <Loaded of={record}>{(data) => <><Record record={data} path={path} onChange={record.reload} /><PatchOfRun run={run} /></>}</Loaded>;
}

function Record({ record, path, onChange }: { record: RelayRecord; path: string; onChange: () => void }) {
  const action = useAction();
  const waits = record.state === "waiting" || record.held === true;
  const open = waits || (record.trouble !== undefined && record.state !== "done");
  const push = (approve: boolean): void => void action.run("POST", `${path}/push`, approve ? { approve } : {}).then(onChange);
  return (
    <Card title={`Commits for ${printable(record.branch, 120)}`} extra={<State is={record.trouble ? "failed" : record.state} />}>
      <p>{waits ? "They wait for a person." : record.note === record.pullRequest ? "" : printable(record.note, 600)}{record.pullRequest && <>The pull request is <OutLink to={record.pullRequest} />.</>}{record.trouble && <span class="bad"> {printable(record.trouble, 600)}</span>}</p>
      {record.commits && record.commits.length > 0 && <p class="commits">{record.commits.slice(0, 40).map((commit) => <code key={commit} class="tag">{printable(commit.slice(0, 10), 10)}</code>)}</p>}
      {record.findings && record.findings.length > 0 && <Findings held={{ branch: record.branch, head: record.commits?.[record.commits.length - 1] ?? "", start: "", commits: record.commits?.length ?? 0, files: record.files, findings: record.findings }} />}
      <ActionProblem of={action} />
      {open && (may("operator") ? (
        <div class="row">{waits ? <><a class="button" href={link("approvals", "", { run: record.run })}>Look at the question</a><Confirm label="Approve and push" danger={false} question={`Push the commits of ${record.run} to ${record.branch}, with what the content policy found?`} onYes={() => push(true)} /></> : <button type="button" disabled={action.busy} onClick={() => push(false)}>Push again</button>}</div>
      ) : <p class="faint">Pushing needs the scope operator.</p>)}
    </Card>
  );
}
