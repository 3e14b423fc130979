import { me } from "../api";
import type { Budgets, CostPoint, CostSeries, Costs, SpendBudget } from "../api-types";
import { gatewayTime } from "../clock";
import { count, money, printable } from "../parts/format";
import { List } from "../parts/list";
import { Ago, Card, Empty, Loaded } from "../parts/parts";
import { Plot, type Series } from "../parts/plot";
import { useResource } from "../resource";
import { go, link, route } from "../router";

const periods: Record<string, string> = { "1": "today", "7": "7 days", "30": "30 days", "365": "a year" };
const groups: Record<string, string> = { model: "model", agent: "agent", account: "account", run: "run" };

/** CostPage shows what was spent on models over time, by model, agent, account or run. */
export function CostPage() {
  const query = route.value.query;
  const days = Number(query.get("days") ?? "7") || 7;
  const by = groups[query.get("by") ?? ""] ?? "model";
  const set = (name: string, value: string): void => go(link("cost", "", { ...Object.fromEntries(query), [name]: value }));
  const since = new Date(gatewayTime());
  since.setHours(0, 0, 0, 0);
  since.setDate(since.getDate() - days + 1);
  const from = encodeURIComponent(since.toISOString());
  const bound = me.value?.account !== undefined && me.value.account !== "";
  return (
    <div class="page">
      <div class="tools">
        <label>Since <select value={String(days)} onChange={(event) => set("days", event.currentTarget.value)}>{Object.entries(periods).map(([n, name]) => <option key={n} value={n}>{name}</option>)}</select></label>
        <label>By <select value={by} onChange={(event) => set("by", event.currentTarget.value)}>{Object.keys(groups).filter((name) => name !== "account" || !bound).map((name) => <option key={name} value={name}>{name}</option>)}</select></label>
      </div>
      <BudgetsCard />
      {by === "run" ? <ByRun since={from} /> : <OverTime key={`${by} ${days}`} by={by} since={since} from={from} bucket={days <= 2 ? "hour" : "day"} />}
    </div>
  );
}

/** BudgetsCard shows the limits of the configuration and what was spent of each. */
function BudgetsCard() {
  const budgets = useResource<Budgets>("/api/v1/budgets", 60000);
  const limited = budgets.data?.budgets.filter((budget) => budget.microUsd > 0 || budget.tokens > 0) ?? [];
  if (budgets.data !== undefined && limited.length === 0) return null;
  return (
    <Card title="Budgets">
      <Loaded of={budgets}>{() => (
        <table class="plain"><thead><tr><th>Of</th><th>Account</th><th class="right">Spent</th><th class="right">Limit</th><th>Used</th><th class="right">At the end of the day</th><th>Set by</th></tr></thead>
          <tbody>{limited.map((budget) => <Spent key={`${budget.scope} ${budget.account}`} budget={budget} />)}</tbody></table>
      )}</Loaded>
    </Card>
  );
}

function Spent({ budget }: { budget: SpendBudget }) {
  const inTokens = budget.microUsd === 0;
  const [spent, most] = inTokens ? [budget.spentTokens, budget.tokens] : [budget.spentMicroUsd, budget.microUsd];
  const shown = (n: number): string => (inTokens ? `${count(n)} tokens` : money(n));
  return (
    <tr><td>{budget.scope === "day" ? "today" : "all time"}</td><td>{budget.account || "none"}</td><td class="right">{shown(spent)}</td><td class="right">{shown(most)}</td>
      <td><meter min={0} max={Math.max(1, most)} high={most * 0.8} optimum={0} value={spent} aria-label={`Used of the budget of ${budget.account || "no account"}`} /></td>
      <td class={`right${budget.expectedMicroUsd && budget.expectedMicroUsd > budget.microUsd && !inTokens ? " bad" : ""}`}>{budget.expectedMicroUsd ? money(budget.expectedMicroUsd) : "–"}</td><td><code>{budget.from ?? ""}</code></td></tr>
  );
}

const bucketMs = { hour: 3600000, day: 86400000 };

function OverTime({ by, since, from, bucket }: { by: string; since: Date; from: string; bucket: "hour" | "day" }) {
  const series = useResource<CostSeries>(`/api/v1/costs/series?since=${from}&by=${by}&bucket=${bucket}`, 60000);
  return (
    <Loaded of={series}>{(data) => {
      const { stacks, times } = stacked(data.points, since, bucket);
      const rows = totals(data.points);
      return (
        <>
          <Card title="Spent"><Plot label={`Cost by ${by}`} series={stacks} times={times} shown={money} /></Card>
          <Card title={`By ${by}`} extra={rows.length > 0 && <button type="button" onClick={() => download(data.points, by)}>CSV</button>}>
            {rows.length === 0 ? <Empty command={'atoll runs start -m "…"'}>Nothing was spent.</Empty> : (
              <table class="plain"><thead><tr><th>{by}</th><th class="right">Calls</th><th class="right">Tokens</th><th class="right">Cost</th><th class="right">Provisional</th><th class="right">Unpriced</th></tr></thead>
                <tbody>{rows.map((row) => <tr key={row.key}><td>{printable(row.key || "none", 120)}</td><td class="right">{count(row.calls)}</td><td class="right">{count(row.tokens)}</td><td class="right">{money(row.microUSD)}</td><td class="right provisional">{row.provisional ? `${count(row.provisional)} calls` : ""}</td><td class="right">{row.unpriced ? `${count(row.unpriced)} calls` : ""}</td></tr>)}</tbody></table>
            )}
          </Card>
        </>
      );
    }}</Loaded>
  );
}

/** stacked returns the points as stacks of equal times; beside the six largest the rest is one. */
function stacked(points: CostPoint[], since: Date, bucket: "hour" | "day"): { stacks: Series[]; times: string[] } {
  const step = bucketMs[bucket];
  const first = Math.floor(since.getTime() / step) * step;
  const length = Math.min(400, Math.max(1, Math.floor((gatewayTime() - first) / step) + 1));
  const names = totals(points).map((row) => row.key);
  const shown = names.slice(0, names.length > 6 ? 5 : 6);
  const stacks: Series[] = shown.map((name) => ({ name: printable(name || "none", 60), values: new Array<number>(length).fill(0) }));
  if (names.length > 6) stacks.push({ name: "others", values: new Array<number>(length).fill(0) });
  for (const point of points) {
    const at = Math.floor((Date.parse(point.at) - first) / step);
    const stack = stacks[shown.indexOf(point.key)] ?? stacks[stacks.length - 1];
    if (stack && at >= 0 && at < length && Number.isFinite(point.microUSD)) stack.values[at] = (stack.values[at] ?? 0) + point.microUSD;
  }
  const format: Intl.DateTimeFormatOptions = bucket === "hour" ? { hour: "2-digit", minute: "2-digit" } : { month: "short", day: "numeric" };
  const times = Array.from({ length }, (_, i) => new Date(first + i * step).toLocaleString("en-GB", format));
  return { stacks, times };
}

type Total = Omit<CostPoint, "at">;

function totals(points: CostPoint[]): Total[] {
  const sums = new Map<string, Total>();
  for (const { key, calls, tokens, microUSD, provisional, unpriced } of points) {
    const sum = sums.get(key) ?? { key, calls: 0, tokens: 0, microUSD: 0, provisional: 0, unpriced: 0 };
    sums.set(key, { key, calls: sum.calls + calls, tokens: sum.tokens + tokens, microUSD: sum.microUSD + microUSD, provisional: sum.provisional + provisional, unpriced: sum.unpriced + unpriced });
  }
  return [...sums.values()].sort((a, b) => b.microUSD - a.microUSD);
}

/** download gives the points as a file; text that a spreadsheet would take for a formula is made harmless. */
function download(points: CostPoint[], by: string): void {
  const cell = (value: string | number): string => (typeof value === "number" ? String(value) : `"${value.replace(/^([=+\-@\t\r])/, "'$1").replaceAll('"', '""')}"`);
  const lines = points.map((point) => [point.at, point.key, point.calls, point.tokens, point.microUSD, point.provisional, point.unpriced].map(cell).join(","));
  const url = URL.createObjectURL(new Blob([`at,${by},calls,tokens,microUSD,provisional,unpriced\n${lines.join("\n")}\n`], { type: "text/csv" }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = `cost-by-${by}.csv`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function ByRun({ since }: { since: string }) {
  const costs = useResource<Costs>(`/api/v1/costs?since=${since}`, 60000);
  return (
    <Loaded of={costs}>{(data) => data.runs.length === 0 ? <Empty command={'atoll runs start -m "…"'}>Nothing was spent.</Empty> : (
      <div class="tall high"><List label="Cost by run" rows={[...data.runs].sort((a, b) => b.microUSD - a.microUSD)} keyOf={(run) => run.run} address={(run) => link("runs", run.run)} columns={[
        { title: "Run", width: "minmax(160px, 2fr)", cell: (run) => run.run },
        { title: "Agent", width: "1fr", wide: true, cell: (run) => run.agent },
        { title: "Calls", width: "80px", right: true, wide: true, cell: (run) => count(run.calls) },
        { title: "Tokens", width: "100px", right: true, wide: true, cell: (run) => count(run.tokens) },
        { title: "Cost", width: "100px", right: true, cell: (run) => <span class={run.provisional ? "provisional" : ""}>{money(run.microUSD)}</span> },
        { title: "Last", width: "100px", right: true, cell: (run) => <Ago at={run.last} /> },
      ]} /></div>
    )}</Loaded>
  );
}
