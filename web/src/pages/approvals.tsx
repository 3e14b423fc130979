import { useState } from "preact/hooks";
import { ApiError, call, may } from "../api";
import type { AnsweredApproval, Approval, Approvals, Problem } from "../api-types";
import { printable } from "../parts/format";
import { Ago, Card, Empty, Loaded, ProblemBox, State } from "../parts/parts";
import { useResource } from "../resource";
import { link } from "../router";

/** ApprovalsPage is the queue of questions to a person, and what was answered. */
export function ApprovalsPage({ id }: { id: string }) {
  const open = useResource<Approvals>("/api/v1/approvals", 2000);
  const all = useResource<Approvals>("/api/v1/approvals?all=true&limit=100", 8000);
  return (
    <div class="page">
      <Card title="Waiting">
        <Loaded of={open}>{(data) => data.approvals.length === 0 ? <Empty>Nothing waits for a person.</Empty> : (
          <ul class="rows">{data.approvals.map((question) => <Line key={question.id} question={question} chosen={question.id === id} />)}</ul>
        )}</Loaded>
      </Card>
      {id !== "" && <Question id={id} onAnswer={() => { open.reload(); all.reload(); }} />}
      <Card title="Answered">
        <Loaded of={all}>{(data) => {
          const past = data.approvals.filter((question) => question.state !== "open");
          return past.length === 0 ? <Empty>Nothing was asked yet.</Empty> : <ul class="rows">{past.map((question) => <Line key={question.id} question={question} chosen={question.id === id} />)}</ul>;
        }}</Loaded>
      </Card>
    </div>
  );
}

function Line({ question, chosen }: { question: Approval; chosen: boolean }) {
  return (
    <li><a href={link("approvals", question.id)} aria-current={chosen ? "true" : undefined}>
      <State is={question.state === "open" ? "waiting" : question.answer === "deny" ? "denied" : question.answer ? "allowed" : question.state} />
      <span class="tag">{question.kind}</span><span class="grow">{printable(question.summary, 300)}</span>
      <span class="faint">{question.owner.agent ?? question.owner.account ?? ""}</span><Ago at={question.created} />
    </a></li>
  );
}

/** Question shows one question with its evidence and takes the answer. The hash of what was shown goes with it. */
function Question({ id, onAnswer }: { id: string; onAnswer: () => void }) {
  const question = useResource<Approval>(`/api/v1/approvals/${encodeURIComponent(id)}`, 5000);
  const [problem, setProblem] = useState<Problem>();
  const [note, setNote] = useState("");
  const answer = async (choice: string, hash: string): Promise<void> => {
    setProblem(undefined);
    try {
      const done = await call<AnsweredApproval>("POST", `/api/v1/approvals/${encodeURIComponent(id)}`, { answer: choice, hash });
      setNote(done.note ?? "");
    } catch (error) {
      if (error instanceof ApiError) setProblem(error.problem);
    }
    question.reload();
    onAnswer();
  };
  return (
    <Loaded of={question}>{(data) => (
      <Card title={printable(data.summary, 300)}>
        <dl class="facts">
          <div><dt>Asked by</dt><dd>{data.owner.agent ?? "–"}{data.owner.run && <> in <a href={link("runs", data.owner.run)}>a run</a></>}</dd></div>
          <div><dt>About</dt><dd>{printable(data.subject, 300)}</dd></div>
          <div><dt>Waits since</dt><dd><Ago at={data.created} /></dd></div>
          <div><dt>Expires</dt><dd><Ago at={data.expires} />, then {data.default === "deny" ? "refused" : "allowed once"}</dd></div>
        </dl>
        {data.evidence && <pre class="evidence">{printable(data.evidence, 60000)}</pre>}
        {problem && <ProblemBox problem={problem} />}
        {note && <p role="status">{printable(note, 2000)}</p>}
        {data.state === "open" ? may("operator.approvals") ? (
          <div class="row">
            <button type="button" class="primary" onClick={() => void answer("once", data.hash)}>Allow once</button>
            {data.rule && <button type="button" onClick={() => void answer("session", data.hash)}>Allow in this session</button>}
            {data.rule && <button type="button" onClick={() => void answer("rule", data.hash)} title={data.rule}>Allow always</button>}
            <button type="button" class="danger" onClick={() => void answer("deny", data.hash)}>Deny</button>
          </div>
        ) : <p class="faint">Your token may not answer.</p> : <p class="faint">{data.state}{data.answer && `: ${data.answer}`}{data.answeredBy && ` by ${data.answeredBy}`}</p>}
      </Card>
    )}</Loaded>
  );
}
