import type { Approval } from "../api-types";
import { count, printable } from "./format";
import { Lines } from "./lines";
import { State } from "./parts";

/** Finding is what the content policy said of one file of some commits. */
export interface Finding {
  rule: string;
  verdict: string;
  commit?: string;
  path?: string;
  detail?: string;
}

/** Held is the evidence of commits that wait for a person. */
export interface Held {
  branch: string;
  head: string;
  start: string;
  commits: number;
  files: number;
  findings: Finding[];
}

/** heldOf reads the evidence of a question about commits; undefined if it is none. */
export function heldOf(question: Approval): Held | undefined {
  if (question.kind !== "relay" || !question.evidence) return undefined;
  try {
    const held = JSON.parse(question.evidence) as Partial<Held>;
    if (typeof held.branch !== "string" || !Array.isArray(held.findings)) return undefined;
    return { branch: held.branch, head: String(held.head ?? ""), start: String(held.start ?? ""), commits: Number(held.commits ?? 0), files: Number(held.files ?? 0), findings: held.findings };
  } catch {
    return undefined;
  }
}

/** Evidence shows what an answer is for: all of it, folded if the same can be read more easily before it. */
export function Evidence({ question }: { question: Approval }) {
  const held = heldOf(question);
  const all = question.evidence && <Lines text={question.evidence} label="Evidence" diff={/^(diff |--- |@@ )/m.test(question.evidence)} />;
  if (!held) return <>{all}</>;
  return (
    <>
      <Findings held={held} />
      <details class="tool"><summary>All of the evidence, as it is recorded</summary>{all}</details>
    </>
  );
}

/** Findings shows what the content policy found in commits. */
export function Findings({ held }: { held: Held }) {
  return (
    <table class="plain stacked">
      <caption>{count(held.commits)} {held.commits === 1 ? "commit" : "commits"} in {count(held.files)} {held.files === 1 ? "file" : "files"} for <code>{printable(held.branch, 200)}</code>, up to <code>{printable(held.head.slice(0, 10))}</code></caption>
      <thead><tr><th>Verdict</th><th>Rule</th><th>File</th><th>Why</th></tr></thead>
      <tbody>{held.findings.slice(0, 200).map((finding, i) => <tr key={i}><td><State is={finding.verdict === "approval" ? "waiting" : finding.verdict} /></td><td>{printable(String(finding.rule), 60)}</td><td><code>{printable(String(finding.path ?? ""), 300)}</code></td><td>{printable(String(finding.detail ?? ""), 600)}</td></tr>)}</tbody>
    </table>
  );
}
