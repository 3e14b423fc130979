import type { Approvals, Run, Runs } from "../api-types";
import type { Props } from "../lazy";
import { count, printable } from "../parts/format";
import { List } from "../parts/list";
import { OutLink } from "../parts/markdown";
import { Ago, Card, Empty, Loaded, State } from "../parts/parts";
import { useRowKeys } from "../parts/rows";
import { useLiveResource } from "../live";
import { link } from "../router";
import { stateOf } from "../runs";
import { Delivered } from "./changes";
import { RelayCard, RelayOfRun } from "./relay";

/** CodePage shows the branches that runs committed to, and what waits before it leaves. */
export function CodePage({ id }: Props) {
  return id ? <BranchPage branch={id} /> : <BranchesPage />;
}

/** Branch is a key of a branch with its runs, the latest first. */
interface Branch {
  key: string;
  name: string;
  runs: Run[];
  pullRequest?: string;
  state: string;
}

function branchesOf(runs: Run[]): Branch[] {
  const found = new Map<string, Branch>();
  for (const run of runs) {
    if (!run.branch) continue;
    const known = found.get(run.branch) ?? { key: run.branch, name: run.delivery?.branch ?? run.branch, runs: [], state: codeState(run) };
    known.runs.push(run);
    if (run.pullRequest && !known.pullRequest) known.pullRequest = run.pullRequest;
    found.set(run.branch, known);
  }
  return [...found.values()];
}

/** codeState says in one word what became of a run's commits. */
function codeState(run: Run): string {
  if (run.step !== "done") return run.waitingFor ? "waiting" : "running";
  if (run.delivery?.error) return "failed";
  if (run.delivery?.state === "waiting") return "held";
  if (run.delivery?.state === "done") return "pushed";
  return run.delivery?.state ?? (run.error ? "failed" : "nothing to push");
}

function BranchesPage() {
  const runs = useLiveResource<Runs>("/api/v1/ai/runs?limit=500&fields=summary", "runs");
  const held = useLiveResource<Approvals>("/api/v1/approvals?kind=relay", "approvals");
  const rows = useRowKeys();
  return (
    <div class="page" ref={rows}>
      <Card title="Held pushes">
        <Loaded of={held}>{(data) => data.approvals.length === 0 ? <Empty>No commits wait for a person.</Empty> : (
          <ul class="rows">{data.approvals.map((question) => <li key={question.id}><a href={link("approvals", question.id)}><State is="held" /><span class="grow">{printable(question.summary, 300)}</span><span class="faint">{question.owner.agent ?? ""}</span><Ago at={question.created} /></a></li>)}</ul>
        )}</Loaded>
      </Card>
      <Card title="Branches">
        <Loaded of={runs}>{(data) => {
          const branches = branchesOf(data.runs);
          return branches.length === 0 ? <Empty command={'atoll runs start --branch NAME -m "…"'}>No run was given a branch.</Empty> : (
            <div class="tall"><List label="Branches" rows={branches} keyOf={(branch) => branch.key} address={(branch) => link("code", branch.key)} columns={[
              { title: "State", width: "130px", cell: (branch) => <State is={branch.state} /> },
              { title: "Branch", width: "minmax(140px, 2fr)", cell: (branch) => <code>{printable(branch.name, 200)}</code> },
              { title: "Runs", width: "60px", right: true, wide: true, cell: (branch) => count(branch.runs.length) },
              { title: "Pull request", width: "minmax(120px, 2fr)", wide: true, cell: (branch) => branch.pullRequest ? <OutLink to={branch.pullRequest} /> : <span class="faint">none</span> },
              { title: "Last run", width: "90px", right: true, cell: (branch) => <Ago at={branch.runs[0]?.created} /> },
            ]} /></div>
          );
        }}</Loaded>
      </Card>
      <RelayCard />
    </div>
  );
}

/** BranchPage shows one branch: its runs, its pull request and what became of each run's commits. */
function BranchPage({ branch }: { branch: string }) {
  const runs = useLiveResource<Runs>(`/api/v1/ai/runs?limit=100&branch=${encodeURIComponent(branch)}`, "runs");
  const rows = useRowKeys();
  return (
    <div class="page" ref={rows}>
      <Loaded of={runs}>{(data) => {
        const found = branchesOf(data.runs)[0];
        if (found === undefined) return <Empty>No run was given this branch.</Empty>;
        const latest = found.runs[0];
        return (
          <>
            <div class="title"><State is={found.state} /><h2>{printable(found.name, 200)}</h2><span class="grow" />{found.pullRequest && <OutLink to={found.pullRequest} />}</div>
            {latest && <RelayOfRun run={latest.id} otherwise={<Delivered run={latest} />} />}
            <Card title="Runs"><ul class="rows">{found.runs.map((run) => (
              <li key={run.id}><a href={link("runs", run.id, { tab: "changes" })}><State is={stateOf(run)} /><span class="grow">{printable(run.task ?? run.id, 300)}</span><span class="tag">{codeState(run)}</span><Ago at={run.created} /></a></li>
            ))}</ul></Card>
          </>
        );
      }}</Loaded>
    </div>
  );
}
