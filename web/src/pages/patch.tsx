import type { RelayPatch } from "../api-types";
import { printable } from "../parts/format";
import { Lines } from "../parts/lines";
import { Card, Empty, Loaded } from "../parts/parts";
import { useResource } from "../resource";
import { countsOf } from "./steps";

const mostCommits = 100;

/** Commit is one commit of a patch. */
interface Commit {
  id: string;
  subject: string;
  text: string;
}

/** PatchOfRun shows what each commit of a run changes. */
export function PatchOfRun({ run }: { run: string }) {
  const patch = useResource<RelayPatch>(`/api/v1/relay/${encodeURIComponent(run)}/patch`);
  return (
    <Card title="What the commits change">
      <Loaded of={patch}>{(data) => {
        const commits = commitsOf(data.patch);
        if (commits.length === 0) return <Empty>{data.why ? printable(data.why, 600) : "Nothing."}</Empty>;
        return (
          <>
            {commits.slice(0, mostCommits).map((commit) => <One key={commit.id} commit={commit} open={commits.length <= 4} />)}
            {(data.cut || commits.length > mostCommits) && <p class="faint">There is more: <code>atoll relay show {run} --patch</code> has it.</p>}
          </>
        );
      }}</Loaded>
    </Card>
  );
}

function One({ commit, open }: { commit: Commit; open: boolean }) {
  const counts = countsOf(commit.text);
  return (
    <details class="tool" open={open}>
      <summary><code class="tag">{commit.id.slice(0, 10)}</code> <span class="grow">{printable(commit.subject, 300)}</span><span class="counts"><span class="good">+{counts.added}</span> <span class="bad">−{counts.removed}</span></span></summary>
      <Lines diff text={commit.text} label={`Commit ${commit.id.slice(0, 10)}`} />
    </details>
  );
}

/** commitsOf splits a patch into its commits. */
export function commitsOf(patch: string): Commit[] {
  return patch.split(/^(?=From [0-9a-f]{40,64} Mon Sep 17 00:00:00 2001$)/m).filter((mail) => mail.startsWith("From ")).map((mail) => {
    const [head = "", ...rest] = mail.split("\n\n");
    const diff = rest.join("\n\n");
    const at = diff.search(/^diff --git /m);
    return { id: mail.slice(5, mail.indexOf(" ", 5)), subject: subjectOf(head), text: at < 0 ? diff : diff.slice(at) };
  });
}

/** subjectOf returns the subject of a mail, without its number. */
function subjectOf(head: string): string {
  const subject = /^Subject: ((?:.*)(?:\n .*)*)/m.exec(head)?.[1] ?? "";
  return subject.replace(/\n /g, " ").replace(/^\[PATCH[^\]]*\] /, "");
}
