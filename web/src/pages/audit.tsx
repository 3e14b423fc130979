import { useEffect, useState } from "preact/hooks";
import { call, may } from "../api";
import type { Audit, AuditVerification } from "../api-types";
import { ActionProblem, useAction } from "../parts/action";
import { count, printable } from "../parts/format";
import { Lines } from "../parts/lines";
import { List } from "../parts/list";
import { Ago, Card, Empty, Loaded, State } from "../parts/parts";
import { useResource } from "../resource";
import { go, link, route } from "../router";

type Entry = Record<string, unknown>;

const kinds = ["model", "exec", "file", "egress", "git", "approval", "login", "browser"];

/** AuditPage shows the hash-chained log, the latest first, and verifies it. */
export function AuditPage() {
  const query = route.value.query;
  const of = (name: string): string => query.get(name) ?? "";
  const set = (name: string, value: string): void => go(link("audit", "", { ...Object.fromEntries(query), [name]: value }));
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<Entry>();
  const path = `/api/v1/audit?limit=500${of("denied") ? "&denied=true" : ""}${of("kind") ? `&kind=${encodeURIComponent(of("kind"))}` : ""}${of("run") ? `&run=${encodeURIComponent(of("run"))}` : ""}`;
  const audit = useResource<Audit>(path, 5000);
  const { older, more } = useOlder(path, audit.data);
  return (
    <div class="page full">
      <div class="tools">
        <input type="search" aria-label="Filter" placeholder="Filter what is loaded" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <label>Kind <select value={of("kind")} onChange={(event) => set("kind", event.currentTarget.value)}><option value="">all</option>{kinds.map((kind) => <option key={kind}>{kind}</option>)}</select></label>
        <label class="check"><input type="checkbox" checked={of("denied") !== ""} onChange={(event) => set("denied", event.currentTarget.checked ? "1" : "")} /> only refused</label>
        {of("run") && <button type="button" onClick={() => set("run", "")}>Run {printable(of("run"), 20)} ✕</button>}
      </div>
      <Verify />
      <Loaded of={audit}>{(data) => {
        const rows = keyed([...older, ...(data.records as Entry[])]).filter(({ key }) => text === "" || key.toLowerCase().includes(text.toLowerCase())).reverse();
        if (rows.length === 0) return <Empty>{text || of("denied") || of("kind") || of("run") ? "No record matches." : "No record yet."}</Empty>;
        return <List label="Audit log" rows={rows} keyOf={(row) => row.key} onEnd={() => void more()} columns={[
          { title: "When", width: "84px", cell: ({ record }) => <Ago at={field(record, "time")} /> },
          { title: "Kind", width: "80px", cell: ({ record }) => field(record, "kind") || "model" },
          { title: "Verdict", width: "100px", cell: ({ record }) => <State is={field(record, "denied") ? "denied" : "allowed"} /> },
          { title: "Agent", width: "90px", wide: true, cell: ({ record }) => printable(field(record, "agent"), 60) },
          { title: "What", width: "minmax(160px, 1fr)", cell: ({ record }) => <button type="button" class="plain-button" tabIndex={-1} onClick={() => setChosen(record)}>{summary(record)}</button> },
          { title: "Run", width: "120px", wide: true, cell: ({ record }) => field(record, "run") && <a href={link("runs", field(record, "run"))}>{printable(field(record, "run").slice(0, 14), 14)}</a> },
        ]} />;
      }}</Loaded>
      {chosen && <Card title="Record" extra={<button type="button" onClick={() => setChosen(undefined)}>Close</button>}><Lines text={JSON.stringify(chosen, null, 2)} label="Record" /></Card>}
    </div>
  );
}

/** useOlder returns the records before the first page, in the order of time. */
function useOlder(path: string, first: Audit | undefined): { older: Entry[]; more: () => Promise<void> } {
  const [pages, setPages] = useState<{ path: string; records: Entry[]; next?: string | undefined; busy: boolean }>();
  const mine = pages?.path === path ? pages : undefined;
  useEffect(() => setPages(undefined), [path]);
  const more = async (): Promise<void> => {
    const cursor = mine ? mine.next : first?.next;
    if (!cursor || mine?.busy) return;
    setPages({ path, records: mine?.records ?? [], next: cursor, busy: true });
    try {
      const page = await call<Audit>("GET", `${path}&cursor=${encodeURIComponent(cursor)}`);
      setPages({ path, records: [...(page.records as Entry[]), ...(mine?.records ?? [])], next: page.next, busy: false });
    } catch {
      setPages(mine);
    }
  };
  return { older: mine?.records ?? [], more };
}

/** Verify reads the whole log and says whether it is whole. */
function Verify() {
  const action = useAction();
  const [found, setFound] = useState<AuditVerification>();
  const verify = async (): Promise<void> => setFound(await action.run<AuditVerification>("POST", "/api/v1/audit/verify", {}));
  if (!may("admin")) return <p class="faint">Verifying the chain needs the scope admin.</p>;
  return (
    <div class="verify" role="status">
      <button type="button" disabled={action.busy} onClick={() => void verify()}>{action.busy ? "Reading the log…" : "Verify the chain"}</button>
      {found && <><State is={found.ok ? "whole" : "broken"} /><span>{count(found.records)} records in {count(found.segments)} {found.segments === 1 ? "segment" : "segments"}{found.retired > 0 && `, ${count(found.retired)} retired`}{found.dropped > 0 && `, ${count(found.dropped)} counted only`}; {count(found.unsigned)} after the last signature</span></>}
      {found?.problems.map((problem, i) => <p key={i} class="bad">{printable(problem.segment, 100)}{problem.line ? `, line ${problem.line}` : ""}: {printable(problem.what, 400)}</p>)}
      <ActionProblem of={action} />
    </div>
  );
}

/** keyed gives every record a key; records that are equal get different ones. */
function keyed(records: Entry[]): { key: string; record: Entry }[] {
  const seen = new Map<string, number>();
  return records.map((record) => {
    const text = field(record, "hash") || JSON.stringify(record);
    const times = (seen.get(text) ?? 0) + 1;
    seen.set(text, times);
    return { key: `${text} ${times}`, record };
  });
}

/** summary returns the members of a record beside those of the other columns. */
function summary(record: Entry): string {
  const rest = Object.entries(record).filter(([name, value]) => !["time", "kind", "hash", "prev", "agent", "run", "session", "attempt", "trace", "graph", "account"].includes(name) && value !== "");
  return printable(rest.map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`).join(" · "), 400);
}

function field(record: Entry, name: string): string {
  const value = record[name];
  return typeof value === "string" ? value : "";
}
