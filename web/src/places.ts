import type { PageOf } from "./lazy";
import { NowPage } from "./pages/now";

/** Place is a page of the rail. */
export interface Place {
  page: string;
  title: string;
  key: string; // after g
  icon: string; // path of a 16 × 16 drawing
  load: () => Promise<PageOf>;
}

/** places are all pages, in the order of the rail. All but the first are loaded when they are opened. */
export const places: Place[] = [
  { page: "now", title: "Now", key: "n", icon: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3l2 2", load: () => Promise.resolve(NowPage) },
  { page: "runs", title: "Runs", key: "r", icon: "M5 3l8 5-8 5z", load: async () => (await import("./pages/runs")).RunsPlace },
  { page: "sessions", title: "Sessions", key: "e", icon: "M2 3h12v8H7l-3 3v-3H2z", load: async () => (await import("./pages/sessions")).SessionsPlace },
  { page: "sandboxes", title: "Sandboxes", key: "s", icon: "M8 2l5 3v6l-5 3-5-3V5zM3 5l5 3 5-3M8 8v6", load: async () => (await import("./pages/sandboxes")).SandboxesPlace },
  { page: "browsers", title: "Browsers", key: "b", icon: "M2 3h12v10H2zM2 6h12M4 4.5h.1M6 4.5h.1", load: async () => (await import("./pages/browsers")).BrowsersPlace },
  { page: "approvals", title: "Approvals", key: "a", icon: "M3 8l3.5 3.5L13 5", load: async () => (await import("./pages/approvals")).ApprovalsPage },
  { page: "code", title: "Code", key: "d", icon: "M5 4v8M5 4a1.5 1.5 0 1 0 0-.1M5 12a1.5 1.5 0 1 0 0 .1M11 6a1.5 1.5 0 1 0 0-.1M11 6c0 4-6 2-6 5", load: async () => (await import("./pages/code")).CodePage },
  { page: "cost", title: "Cost", key: "c", icon: "M3 13V8M8 13V3M13 13V6", load: async () => (await import("./pages/cost")).CostPage },
  { page: "audit", title: "Audit", key: "u", icon: "M4 2h6l3 3v9H4zM6 7h5M6 10h5", load: async () => (await import("./pages/audit")).AuditPage },
  { page: "catalogue", title: "Catalogue", key: "t", icon: "M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z", load: async () => (await import("./pages/catalogue")).CataloguePage },
  { page: "policy", title: "Policy", key: "p", icon: "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z", load: async () => (await import("./pages/policy")).PolicyPage },
  { page: "access", title: "Access", key: "x", icon: "M13 6a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM8 8l-5 5M5 11l1.5 1.5", load: async () => (await import("./pages/access")).AccessPage },
  { page: "health", title: "Health", key: "h", icon: "M2 8h3l2-4 2 8 2-4h3", load: async () => (await import("./pages/health")).HealthPage },
];
