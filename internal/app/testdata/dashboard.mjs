// The dashboard in a real browser: logged in, every page looked at in both themes with
// axe, used with the keyboard alone, and attacked. It prints what failed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { chromium } from "playwright-core";

const base = process.env.DASHBOARD_URL;
const { code, reader, run, failed } = JSON.parse(process.env.DASHBOARD_GIVEN);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const failures = [];
const check = (what, holds) => { if (!holds) failures.push(what); };
const seen = []; // every address and header of the session that may hold a secret

const browser = await chromium.launch({ executablePath: process.env.DASHBOARD_CHROMIUM, args: ["--no-sandbox"] });

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  await context.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  const page = await context.newPage();
  page.on("console", (message) => { if (message.text().startsWith("policy:") || message.text().includes("Content Security Policy")) failures.push(message.text()); });
  page.on("pageerror", (error) => failures.push(`script: ${error.message}`));
  page.on("request", (request) => seen.push(request.url(), request.headers()["referer"] ?? ""));
  return page;
}

// axe is put into the page past its policy, by the debugger.
async function look(page, where) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations.map((v) => `${v.id}: ${v.nodes[0]?.html?.slice(0, 160)}`));
  for (const violation of found) failures.push(`axe, ${where}: ${violation}`);
  await session.detach();
}

const pages = { now: "Runs under way", runs: "Start a run", sandboxes: "in all", approvals: "push 1 commits", cost: "By model", audit: "allowed", catalogue: "sandbox:agent", health: "Gateway", sessions: "New session", code: "Held pushes", policy: "Where it works", access: "reader" };

// Log-in by code; the code is gone from the address and good no more.
const page = await open({ colorScheme: "dark" });
await page.goto(`${base}#code=${code}`);
await page.waitForSelector("nav.rail");
check("the code stays in the address", !page.url().includes(code));
const again = await open();
await again.goto(`${base}#code=${code}`);
await again.waitForSelector("form");
check("a code logs in twice", (await again.locator("nav.rail").count()) === 0 && (await again.locator("[role=alert]").count()) === 1);
await look(again, "log-in");
await again.context().close();

for (const scheme of ["dark", "light"]) {
  await page.emulateMedia({ colorScheme: scheme });
  for (const [name, text] of Object.entries(pages)) {
    await page.goto(`${base}#/${name}`);
    await page.getByText(text).first().waitFor({ timeout: 20000 }).catch(() => failures.push(`${name} does not show ${text}`));
    await look(page, `${name}, ${scheme}`);
  }
}

// A run: its answer, its events and its cost; one that failed says why.
await page.goto(`${base}#/runs/${run}`);
await page.getByRole("heading", { name: "Timeline" }).waitFor();
await page.locator(".timeline li").first().waitFor();
check("the run is not done", (await page.locator(".title .state.good", { hasText: "done" }).count()) === 1);
check("the run has no cost", (await page.locator("dd", { hasText: "$0.0001" }).count()) === 1 && (await page.locator(".facts", { hasText: "Calls1" }).count()) === 1);
check("the task is not shown", (await page.getByText("<img src=x").count()) > 0);
await look(page, "run");
await page.goto(`${base}#/runs/${failed}`);
await page.getByRole("alert").waitFor();
check("the run has not failed", (await page.locator(".title .state.bad", { hasText: "failed" }).count()) === 1);
// What an agent wrote is text.
check("an agent's words became an element", (await page.locator("main img").count()) === 0 && !(await page.evaluate(() => globalThis.pwned)));

// Keyboard alone: to the runs, the first of them, and the palette.
await page.goto(`${base}#/now`);
await page.keyboard.press("g");
await page.keyboard.press("r");
await page.waitForURL(/#\/runs$/);
await page.locator("[role=grid]").focus();
await page.keyboard.press("j");
await page.keyboard.press("Enter");
await page.waitForURL(/#\/runs\/.+/);
await page.keyboard.press("Control+k");
await page.keyboard.type("sandb");
await page.keyboard.press("Enter");
await page.waitForURL(/#\/sandboxes$/);

// A phone.
await page.setViewportSize({ width: 360, height: 740 });
for (const name of ["now", "approvals", `runs/${run}`]) {
  await page.goto(`${base}#/${name}`);
  await page.waitForTimeout(300);
  check(`${name} is wider than a phone`, await page.evaluate(() => document.documentElement.scrollWidth <= 360));
}
await page.setViewportSize({ width: 1280, height: 800 });

// A second tab is logged in by the first; storage holds no token, cookies are not read.
const tab = await page.context().newPage();
await tab.goto(`${base}#/health`);
await tab.waitForSelector("nav.rail");
const kept = await tab.evaluate(() => JSON.stringify([{ ...localStorage }, document.cookie, location.href, history.state]));
check(`kept in the page: ${kept}`, !kept.includes(code) && !/atollgw_|page/.test(kept));
const secret = await tab.evaluate(() => sessionStorage.getItem("atoll.page"));
check("the page's secret is in an address", !seen.some((text) => text.includes(secret) || text.includes(`${code}`) && !text.includes("#")));
const cookies = await page.context().cookies();
check("the cookie is not confined", cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === "Strict");

// Pages of another site: no request of theirs is answered, no frame shows the page.
const foreign = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end("<!doctype html><title>x</title>"));
await new Promise((done) => foreign.listen(0, "127.0.0.1", done));
const other = await page.context().newPage();
await other.goto(`http://127.0.0.1:${foreign.address().port}/`);
const statuses = await other.evaluate(async ([target, half]) => {
  const ask = async (path, init) => { try { return (await fetch(target + path, { credentials: "include", mode: "no-cors", ...init })).type; } catch { return "refused"; } };
  const frame = document.createElement("iframe");
  frame.src = `${target}/ui/`;
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; setTimeout(done, 3000); });
  let socket = "open";
  try { await new Promise((done, fail) => { const ws = new WebSocket(`${target.replace("http", "ws")}/api/v1/live`, ["atoll", `atoll.page.${half}`]); ws.onopen = done; ws.onerror = fail; }); } catch { socket = "refused"; }
  let readable = "no";
  try { readable = await (await fetch(`${target}/api/v1/me`, { credentials: "include", headers: { "X-Atoll-Page": half } })).text(); } catch { /* as it should be */ }
  return { post: await ask("/api/v1/ui/logout", { method: "POST" }), frame: frame.contentDocument === null ? "other" : frame.contentDocument.body?.innerHTML ?? "", socket, readable };
}, [new URL(base).origin, secret]);
check(`another site read: ${JSON.stringify(statuses)}`, statuses.readable === "no" && statuses.socket === "refused");
const me = await tab.evaluate(async (half) => (await fetch("/api/v1/me", { headers: { "X-Atoll-Page": half } })).status, secret);
check("another site logged the person out", me === 200);
const alone = await tab.evaluate(async () => (await fetch("/api/v1/me")).status);
check("the cookie alone opens something", alone === 401);
foreign.close();

// A token that only reads: no button that changes something, and its account's runs alone.
const limited = await open();
await limited.goto(base);
await limited.fill("#token", reader);
await limited.keyboard.press("Enter");
await limited.waitForSelector("nav.rail");
await limited.goto(`${base}#/runs`);
await limited.getByText("No runs yet").waitFor({ timeout: 20000 }).catch(() => failures.push("a bound token sees runs of others"));
check("a token that reads may start runs", (await limited.getByText("Start a run").count()) === 0);
await limited.goto(`${base}#/runs/${run}`);
await limited.getByText("Not found").waitFor({ timeout: 20000 }).catch(() => failures.push("another account's run is not refused"));
await limited.getByRole("button", { name: "Log out" }).click();
await limited.waitForSelector("form");
await limited.goBack();
check("something is shown after the log-out", (await limited.locator("nav.rail").count()) === 0);

await browser.close();
console.log(JSON.stringify({ failures }));
