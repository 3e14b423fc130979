// Every page: with something on it in both themes, with nothing, and for somebody who
// may not see it.
import { check, given, logIn, look, open, section, shows, visit } from "./kit.mjs";

export const full = {
  now: "push 1 commit", runs: "Write notes about the parser", sessions: "agent:main:demo", sandboxes: "in all", browsers: /browser/i, approvals: "push 1 commit", code: "parser-notes",
  cost: "By model", audit: "allowed", catalogue: "sandbox:agent", policy: "sandbox.mode is all", access: "reader", health: "configuration", browsers: "No browsers yet",
  [`runs/${given.run}`]: "Timeline", [`runs/${given.failed}`]: "agent_failed", [`runs/${given.pushed}?tab=changes`]: "github.example.com", [`runs/${given.pushed}?tab=changes&`]: "+# notes", [`runs/${given.run}?tab=calls`]: "small",
  [`runs/${given.run}?tab=audit`]: "model", [`runs/${given.run}?tab=raw`]: "graphId", [`runs/compare?a=${given.run}&b=${given.failed}`]: "Two runs",
  [`sessions/${encodeURIComponent(given.session)}`]: "main.go", [`sandboxes/${given.sandbox}`]: "Memory", [`code/parser-notes`]: "github.example.com",
  "cost?by=run": "Run", "cost?by=agent&days=1": "By agent", "policy?tool=exec&path=%2Fworkspace%2Fx": "Tool exec", nowhere: "no such page",
};

export async function pages(page) {
  await section("pages", async () => {
    for (const [place, text] of Object.entries(full)) {
      await page.emulateMedia({ colorScheme: "dark" });
      await visit(page, place, text);
      await look(page, `${place}, dark`);
      await page.emulateMedia({ colorScheme: "light" });
      await look(page, `${place}, light`, ["color-contrast"]);
    }
    await page.emulateMedia({ colorScheme: "dark" });
  });
  await section("run", () => oneRun(page));
  await section("drift", () => drift(page));
  await section("the catalogue is what the interface says", () => catalogue(page));
  await section("verbs", () => verbs(page));
}

/** A run has its state, its cost and its steps; what an agent wrote is text. */
async function oneRun(page) {
  await visit(page, `runs/${given.run}`);
  await page.locator(".timeline li").first().waitFor();
  check("the run is not done", (await page.locator(".title .state.good", { hasText: "done" }).count()) === 1);
  check("the run has no cost", (await page.locator("dd", { hasText: "$0.0001" }).count()) === 1 && (await page.locator(".facts", { hasText: "Calls1" }).count()) === 1);
  const trace = await page.getByRole("link", { name: "open (traces.example.org)" }).getAttribute("href");
  check(`the trace is at ${trace}`, /^https:\/\/traces\.example\.org\/t\/[0-9a-f]{32}$/.test(trace ?? ""));
  check("the task is not shown", (await page.getByText("<img src=x").count()) > 0);
  const words = await page.locator("main").innerText();
  check("escapes or marks of direction are shown", !/[\u001b\u0007\u202a-\u202e]/.test(words));
  check("an agent's words became an element", (await page.locator("main img").count()) === 0 && !(await page.evaluate(() => globalThis.pwned)));
  await visit(page, `runs/${given.run}?tab=raw`, "graphId");
  const tops = await page.locator(".lines span").evaluateAll((lines) => lines.map((line) => line.getBoundingClientRect().top));
  check("lines are not below each other", tops.length > 5 && tops.every((top, i) => i === 0 || top > tops[i - 1]));
  await visit(page, `runs/${given.task}`, "It is a task of the session");
  await page.locator(".timeline .tool", { hasText: "main.go" }).first().waitFor();
  await shows(page, "go vet", "the words of a task");
  await visit(page, `runs/${given.failed}`);
  await page.getByRole("alert").waitFor();
  check("the run has not failed", (await page.locator(".title .state.bad", { hasText: "failed" }).count()) === 1);
}

/** A sandbox whose behaviour files differ from the agent's shows what differs, as text. */
async function drift(page) {
  const box = new RegExp(`/api/v1/sandboxes/${given.sandbox}$`);
  const diffs = new RegExp(`/api/v1/sandboxes/${given.sandbox}/drift$`);
  await page.route(box, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), drift: { modified: ["SOUL.md"] } } });
  });
  await page.route(diffs, (route) => route.fulfill({ json: { files: [{ path: "SOUL.md", modified: true, diff: "@@ -1 +1 @@\n-be kind\n+be quick <img src=x onerror=alert(1)>\n" }] } }));
  await visit(page, `sandboxes/${given.sandbox}`, "Differs from its source");
  await shows(page, "+be quick <img", "what differs");
  check("a drifted file became an element", (await page.locator("main img").count()) === 0);
  await page.unroute(box);
  await page.unroute(diffs);
  await page.goto("about:blank");
}

/** Agents that only the interface knows are offered, and no others. */
async function catalogue(page) {
  const agents = [{ graphId: "langgraph:poet", name: "Poet of the test", description: "Writes." }];
  await page.route(/\/api\/v1\/ai\/agents/, (route) => route.fulfill({ json: { agents } }));
  await page.goto("about:blank");
  await visit(page, "catalogue", "Poet of the test");
  check("the catalogue has other agents", (await page.locator(".card.agent").count()) === 1);
  await visit(page, "runs?start=1", "Start");
  const offered = await page.locator("form.start select").first().locator("option").allInnerTexts();
  check(`runs are offered for ${offered}`, offered.join() === "Poet of the test");
  await page.unroute(/\/api\/v1\/ai\/agents/);
  await page.goto("about:blank");
}

/** What pages do: explain, verify, say something, start a run and cancel it, answer. */
async function verbs(page) {
  await visit(page, "audit");
  await page.getByRole("button", { name: "Verify the chain" }).click();
  await shows(page, "whole", "audit");
  await converse(page);
  await startAndCancel(page);
  await answer(page);
  await tokens(page);
}

/** What was said stays shown, and a tool call open, when the history takes the place of what was said live. */
async function converse(page) {
  await visit(page, "sessions/agent:main:fresh", "begins with the first message");
  let release;
  const released = new Promise((done) => { release = done; });
  await page.route(/\/history\?/, async (route) => { await released; await route.continue(); });
  await page.getByLabel("Message", { exact: true }).fill("Write main.go");
  await page.keyboard.press("Enter");
  await shows(page, "go vet", "a conversation");
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  await page.locator(".said summary", { hasText: "exec" }).click();
  await shows(page, "exit code 0", "a tool call");
  release();
  // Only a call that was watched says how long it took.
  await page.waitForFunction(() => document.querySelector(".said .tool summary .faint")?.textContent === "");
  await page.unroute(/\/history\?/);
  check("a tool call is closed when the history comes", await page.locator(".said").getByText("exit code 0").first().isVisible());
  const said = page.locator(".said .message.user");
  check(`the message is shown ${await said.count()} times`, (await said.count()) === 1);
}

/** A token is shown once, opens the gateway until it is revoked, and is not in the page afterwards. */
async function tokens(page) {
  await visit(page, "access", "reader");
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByLabel("Name").fill("made here");
  await page.getByRole("button", { name: "Make it" }).click();
  const text = await page.locator(".made code").innerText();
  const status = () => page.evaluate(async (token) => (await fetch("/api/v1/me", { headers: { Authorization: `Bearer ${token}` }, credentials: "omit" })).status, text);
  check(`the token made is answered with ${await status()}`, text.startsWith("atollgw_") && (await status()) === 200);
  await page.getByRole("button", { name: "Forget it" }).click();
  check("the token is in the page after it was shown", !(await page.content()).includes(text));
  const row = page.locator("tr", { hasText: "made here" });
  await row.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await row.getByText("revoked").waitFor();
  check("a revoked token opens the gateway", (await status()) === 401);
}

async function startAndCancel(page) {
  await visit(page, "runs");
  await page.getByRole("button", { name: "Start a run" }).click();
  await page.locator("form.start select").first().selectOption("waits");
  await page.getByRole("textbox", { name: "Task" }).fill("Wait for a long time");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(/#\/runs\/run-/);
  await shows(page, "executing", "a run under way");
  const terminal = await page.getByRole("link", { name: "Terminal" }).getAttribute("href");
  check(`the terminal of a run is at ${terminal}`, /^\/ui\/terminal\.html#[a-z0-9-]+$/.test(terminal ?? ""));
  await visit(page, "now", "Wait for a long time");
  await page.getByText("Wait for a long time").click();
  // Looked at within the click: a moment later it may be confirmed.
  const early = await page.getByRole("button", { name: "Cancel" }).first().evaluate((button) => { button.click(); return button.nextElementSibling.querySelectorAll("button")[1].disabled; });
  check("cancelling is confirmed at once", early);
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await shows(page, "cancelled", "a cancelled run");
}

/** The answer carries the hash of what was shown, and asks with the name of the object. */
async function answer(page) {
  await visit(page, `approvals?run=${given.held}`, "protected-path");
  await shows(page, "AGENTS.md", "the evidence");
  const sent = page.waitForRequest((request) => request.method() === "POST" && request.url().includes("/approvals/"));
  await page.getByRole("button", { name: "Deny" }).click();
  check("the answer has no hash", /"hash":"[0-9a-f]{64}"/.test((await sent).postData() ?? ""));
  await shows(page, "denied", "an answered question");
  await page.getByRole("button", { name: "Deny" }).waitFor({ state: "detached" });
}

const empty = {
  now: "Nothing runs", runs: "No runs yet", sessions: "No sessions yet", sandboxes: "No sandboxes yet", approvals: "Nothing waits for a person", code: "No commits wait", cost: "Nothing was spent", "audit?kind=exec": "No record matches",
};
const refused = { access: "scope admin", health: "bound to one", [`runs/${given.run}`]: "Not found", [`sandboxes/${given.sandbox}`]: "Not found", [`approvals/${"x".repeat(13)}`]: "Not found", [`runs/${given.run}?tab=calls`]: "Not found" };

export async function others() {
  await section("nothing there, and not allowed", async () => {
    const page = await open();
    await logIn(page, given.reader);
    for (const [place, text] of [...Object.entries(empty), ...Object.entries(refused)]) {
      await visit(page, place, text);
      await look(page, `${place}, empty`);
    }
    for (const [place, label] of [["runs", "Start a run"], ["sessions", "New session"], ["audit?kind=exec", "Verify the chain"]]) {
      await visit(page, place, empty[place]);
      check(`a token that reads has the button ${label}`, (await page.getByRole("button", { name: label }).count()) === 0);
    }
    await visit(page, `sessions/${encodeURIComponent(given.session)}`, "needs the scope run");
    check("another account's session is shown", (await page.getByText("main.go").count()) === 0);
    await page.getByRole("button", { name: "Log out" }).click();
    await page.waitForSelector("form");
    await page.goBack();
    check("something is shown after the log-out", (await page.locator("nav.rail").count()) === 0);
    await page.context().close();
  });
}
