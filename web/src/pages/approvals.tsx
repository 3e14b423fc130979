import { useState } from "preact/hooks";
import { may } from "../api";
import type { AnsweredApproval, Approval, Approvals } from "../api-types";
import { ActionProblem, useAction } from "../parts/action";
import { Evidence } from "../parts/evidence";
import { printable } from "../parts/format";
import { List } from "../parts/list";
import { Ago, Card, Confirm, Empty, Loaded, State } from "../parts/parts";
import { asResource, useLiveResource, useRows } from "../live";
import { merge, useMore } from "../more";
import { link, route } from "../router";

const pageSize = 1000;
const rowHeight = 32;
const mostShown = 10;

/** ApprovalsPage is the queue of questions to a person, and what was answered. */
export function ApprovalsPage({ id }: { id: string }) {
  const open = asResource(useRows<Approval>("approvals"));
  const all = useLiveResource<Approvals>("/api/v1/approvals?all=true&limit=100", "approvals");
  const run = route.value.query.get("run");
  const chosen = id || (run ? open.data?.find((question) => question.owner.run === run)?.id ?? "" : "");
  const waiting = open.data?.sort((a, b) => b.created.localeCompare(a.created));
  const more = useMore<Approvals, Approval>(`/api/v1/approvals?limit=${pageSize}`, waiting && waiting.length >= pageSize ? waiting[waiting.length - 1]?.id : undefined, (page) => page.approvals);
  const older = useMore<Approvals, Approval>(`/api/v1/approvals?all=true&limit=${pageSize}`, all.data?.next, (page) => page.approvals);
  return (
    <div class="page">
      <Card title="Waiting">
        <Loaded of={open}>{(data) => data.length === 0 ? <Empty>Nothing waits for a person.</Empty> : <Questions label="Waiting" rows={merge(data, more.rows, (question) => question.id)} chosen={chosen} onEnd={more.more} />}</Loaded>
      </Card>
      {chosen !== "" && <Question key={chosen} id={chosen} onAnswer={all.reload} />}
      <Card title="Answered">
        <Loaded of={all}>{(data) => {
          const past = merge(data.approvals, older.rows, (question) => question.id).filter((question) => question.state !== "open");
          return past.length === 0 ? <Empty>Nothing was answered yet.</Empty> : <Questions label="Answered" rows={past} chosen={chosen} onEnd={older.more} />;
        }}</Loaded>
      </Card>
    </div>
  );
}

/** Questions is a list of questions, as high as it needs to be and not more. */
function Questions({ label, rows, chosen, onEnd }: { label: string; rows: Approval[]; chosen: string; onEnd: () => Promise<void> }) {
  return (
    <div class="tall fits" style={{ "--height": `${(Math.min(rows.length, mostShown) + 1) * rowHeight + 2}px` }}>
      <List label={label} rows={rows} keyOf={(question) => question.id} address={(question) => link("approvals", question.id)} onEnd={() => void onEnd()} marked={[chosen]} columns={[
        { title: "State", width: "90px", cell: (question) => <State is={stateOf(question)} /> },
        { title: "Kind", width: "80px", wide: true, cell: (question) => <span class="tag">{question.kind}</span> },
        { title: "Question", width: "minmax(140px, 4fr)", cell: (question) => printable(question.summary, 300) },
        { title: "From", width: "minmax(60px, 1fr)", wide: true, cell: (question) => <span class="faint">{question.owner.agent ?? question.owner.account ?? ""}</span> },
        { title: "Asked", width: "86px", right: true, cell: (question) => <Ago at={question.created} /> },
      ]} />
    </div>
  );
}

function stateOf(question: Approval): string {
  if (question.state === "open") return "waiting";
  return question.answer === "deny" ? "denied" : question.answer ? "allowed" : question.state;
}

/** Question shows one question with its evidence and takes the answer. The hash of what was shown goes with it. */
function Question({ id, onAnswer }: { id: string; onAnswer: () => void }) {
  const path = `/api/v1/approvals/${encodeURIComponent(id)}`;
  const question = useLiveResource<Approval>(path, "approvals");
  const action = useAction();
  const [note, setNote] = useState("");
  const answer = async (choice: string, hash: string): Promise<void> => {
    const done = await action.run<AnsweredApproval>("POST", path, { answer: choice, hash });
    setNote(done?.note ?? "");
    question.reload();
    onAnswer();
  };
  return (
    <Loaded of={question}>{(data) => (
      <Card title={printable(data.summary, 300)}>
        <dl class="facts">
          <div><dt>Asked by</dt><dd>{data.owner.agent ?? "–"}{data.owner.run && <> in <a href={link("runs", data.owner.run)}>a run</a></>}{data.owner.account && ` of ${data.owner.account}`}</dd></div>
          <div class="wide"><dt>About</dt><dd>{printable(data.subject, 300)}</dd></div>
          <div><dt>Waits since</dt><dd><Ago at={data.created} /></dd></div>
          <div><dt>Expires</dt><dd><Ago at={data.expires} />, then {data.default === "deny" ? "refused" : "allowed once"}</dd></div>
          {data.rule && <div><dt>A rule would be</dt><dd><code>{printable(data.rule, 300)}</code></dd></div>}
        </dl>
        <Evidence question={data} />
        <ActionProblem of={action} />
        {note && <p role="status">{printable(note, 2000)}</p>}
        {data.state === "open" ? <Answers question={data} busy={action.busy} onAnswer={(choice) => void answer(choice, data.hash)} />
          : <p class="faint">{stateOf(data)}{data.answer && `: ${data.answer}`}{data.answeredBy && ` by ${printable(data.answeredBy, 100)}`}{data.answeredAt && <> <Ago at={data.answeredAt} /></>}</p>}
      </Card>
    )}</Loaded>
  );
}

/** Answers are the answers that a person can give. What allows something asks again, with the object's name. */
function Answers({ question, busy, onAnswer }: { question: Approval; busy: boolean; onAnswer: (choice: string) => void }) {
  if (!may("operator.approvals")) return <p class="faint">Your token may look. Answering needs the scope operator.approvals.</p>;
  const about = printable(question.subject, 200);
  return (
    <div class="row">
      <Confirm label="Allow once" danger={false} question={`Allow this once: ${about}?`} onYes={() => onAnswer("once")} />
      {question.rule && <Confirm label="Allow in this session" danger={false} question={`Allow ${printable(question.rule, 200)} until this session ends?`} onYes={() => onAnswer("session")} />}
      {question.rule && <Confirm label="Allow always" danger={false} question={`Allow ${printable(question.rule, 200)} from now on, without asking?`} onYes={() => onAnswer("rule")} />}
      <button type="button" class="danger" disabled={busy} onClick={() => onAnswer("deny")}>Deny</button>
    </div>
  );
}
