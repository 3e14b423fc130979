import { signal } from "@preact/signals";
import { render } from "preact";
import { ApiError, logIn, me, resume } from "./api";
import type { Problem } from "./api-types";
import { ApprovalsPage } from "./pages/approvals";
import { LogInPage } from "./pages/login";
import { NowPage } from "./pages/now";
import { AuditPage, CataloguePage, CostPage, HealthPage } from "./pages/others";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { SandboxPage, SandboxesPage } from "./pages/sandboxes";
import { Empty } from "./parts/parts";
import { route } from "./router";
import { Shell, type Place } from "./shell";

const places: Place[] = [
  { page: "now", title: "Now", key: "n", icon: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3l2 2" },
  { page: "runs", title: "Runs", key: "r", icon: "M5 3l8 5-8 5z" },
  { page: "sandboxes", title: "Sandboxes", key: "s", icon: "M8 2l5 3v6l-5 3-5-3V5zM3 5l5 3 5-3M8 8v6" },
  { page: "approvals", title: "Approvals", key: "a", icon: "M3 8l3.5 3.5L13 5" },
  { page: "cost", title: "Cost", key: "c", icon: "M3 13V8M8 13V3M13 13V6" },
  { page: "audit", title: "Audit", key: "u", icon: "M4 2h6l3 3v9H4zM6 7h5M6 10h5" },
  { page: "catalogue", title: "Catalogue", key: "t", icon: "M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z" },
  { page: "health", title: "Health", key: "h", icon: "M2 8h3l2-4 2 8 2-4h3" },
];

function Page() {
  const { page, id } = route.value;
  switch (page) {
    case "now": return <NowPage />;
    case "runs": return id ? <RunPage id={id} /> : <RunsPage />;
    case "sandboxes": return id ? <SandboxPage id={id} /> : <SandboxesPage />;
    case "approvals": return <ApprovalsPage id={id} />;
    case "cost": return <CostPage />;
    case "audit": return <AuditPage />;
    case "catalogue": return <CataloguePage />;
    case "health": return <HealthPage />;
    default: return <Empty>There is no such page.</Empty>;
  }
}

const begun = signal(false);
const failed = signal<Problem | undefined>(undefined);

function App() {
  if (!begun.value) return null;
  if (me.value === null) return <LogInPage first={failed.value} />;
  return <Shell places={places}><Page key={`${me.value.name} ${me.value.account ?? ""}`} /></Shell>;
}

/** begin logs in with the code of the address, which is removed at once, or resumes a log-in. */
async function begin(): Promise<void> {
  const theme = localStorage.getItem("atoll.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset["theme"] = theme;
  const code = /^#code=([A-Z2-7]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, "", `${location.pathname}#/now`);
  try {
    if (code !== undefined) await logIn({ code });
    else await resume();
  } catch (error) {
    if (error instanceof ApiError) failed.value = error.problem;
  }
  if (code !== undefined) dispatchEvent(new HashChangeEvent("hashchange"));
  begun.value = true;
}

render(<App />, document.getElementById("app")!);
void begin();
