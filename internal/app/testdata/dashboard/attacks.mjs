// Attacks: pages of other sites, halves of a log-in, other accounts, and what is kept where.
import { createServer } from "node:http";
import { base, check, given, logIn, look, open, origin, section, seen, visit, watched } from "./kit.mjs";

/** begin logs in with the code, which is gone from the address and good no more. */
export async function begin() {
  const page = await open({ colorScheme: "dark" });
  await section("log-in", async () => {
    await page.goto(`${base}#code=${given.code}`);
    await page.waitForSelector("nav.rail");
    check("the code stays in the address", !page.url().includes(given.code));
    const again = await open();
    await again.goto(`${base}#code=${given.code}`);
    await again.waitForSelector("form");
    check("a code logs in twice", (await again.locator("nav.rail").count()) === 0 && (await again.locator("[role=alert]").count()) === 1);
    await look(again, "log-in");
    await again.context().close();
  });
  return page;
}

export async function attacks(page) {
  await section("what is kept", () => kept(page));
  await section("another site", () => foreign(page));
  await section("halves of a log-in", () => halves(page));
  await section("paths", () => paths(page));
  await section("another person at the same browser", () => swap());
  await section("tabs end together", () => together());
}

/** A second tab is logged in by the first; nothing of a token is in storage, cookies, addresses or the page. */
async function kept(page) {
  const tab = watched(await page.context().newPage());
  await tab.goto(`${base}#/access`);
  await tab.waitForSelector("nav.rail");
  const stored = await tab.evaluate(() => JSON.stringify([{ ...localStorage }, document.cookie, location.href, history.state]));
  check(`kept in the page: ${stored}`, !stored.includes(given.code) && !/atollgw_|page/.test(stored));
  const secret = await tab.evaluate(() => sessionStorage.getItem("atoll.page"));
  const secrets = [secret, given.code, given.admin, given.reader];
  check("a secret is in an address", !seen.some((text) => secrets.some((one) => text.split("#")[0].includes(one))));
  check("a secret is in the page", !/atollgw_/.test(await tab.content()) && !(await tab.content()).includes(secret));
  const cookies = await page.context().cookies();
  check("the cookie is not confined", cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === "Strict");
  check("a worker is registered", (await tab.evaluate(async () => (await navigator.serviceWorker?.getRegistrations())?.length ?? 0)) === 0);
  const kept = await tab.evaluate(async (half) => (await fetch("/api/v1/tokens", { headers: { "X-Atoll-Page": half } })).headers.get("Cache-Control"), secret);
  check(`answers may be kept: ${kept}`, kept === "no-store");
  check("databases or caches are used", await tab.evaluate(async () => (await indexedDB.databases()).length === 0 && (await caches.keys()).length === 0));
  await tab.close();
}

/** Pages of another site read nothing, change nothing and show no frame, with the cookie and even the page's secret. */
async function foreign(page) {
  const secret = await page.evaluate(() => sessionStorage.getItem("atoll.page"));
  const server = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end("<!doctype html><title>x</title>"));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const other = await page.context().newPage();
  await other.goto(`http://127.0.0.1:${server.address().port}/`);
  const found = await other.evaluate(attack, [origin, secret, given.run]);
  check(`another site did: ${JSON.stringify(found)}`, found.readable === "no" && found.socket === "refused" && found.frame === "empty" && found.module === "refused");
  const me = await page.evaluate(async (half) => (await fetch("/api/v1/me", { headers: { "X-Atoll-Page": half } })).status, secret);
  check("another site logged the person out", me === 200);
  // A name of another site that now has our address.
  const rebound = await other.goto(`http://rebound.example:${new URL(origin).port}/ui/`);
  check(`a name that is not ours is answered with ${rebound.status()}`, rebound.status() === 421 && !(await other.content()).includes("/ui/assets/"));
  server.close();
  await other.close();
}

/** attack runs in a page of another site. */
async function attack([target, half, run]) {
  const ask = async (path, init) => { try { return (await fetch(target + path, { credentials: "include", mode: "no-cors", ...init })).type; } catch { return "refused"; } };
  const found = { readable: "no", socket: "open", frame: "empty", module: "loaded" };
  const text = { "Content-Type": "text/plain" };
  for (const [path, init] of [["/api/v1/ui/logout", { method: "POST" }], ["/api/v1/ui/logout", { method: "POST", headers: text, body: "{}" }], ["/api/v1/ui/login", { method: "POST", headers: text, body: '{"token":"x"}' }], [`/api/v1/ai/runs/${run}`, { method: "POST", headers: text, body: "_method=DELETE" }]]) await ask(path, init);
  const frame = document.createElement("iframe");
  frame.src = `${target}/ui/`;
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; setTimeout(done, 3000); });
  try { if (frame.contentWindow.length > 0 || frame.contentDocument?.body?.innerHTML) found.frame = "shown"; } catch { /* another origin, as refused frames are */ }
  try { await new Promise((done, fail) => { const ws = new WebSocket(`${target.replace("http", "ws")}/api/v1/live`, ["atoll", `atoll.page.${half}`]); ws.onopen = done; ws.onerror = fail; }); } catch { found.socket = "refused"; }
  for (const path of ["/api/v1/me", "/api/v1/tokens", "/openapi.json"]) {
    try { found.readable = await (await fetch(target + path, { credentials: "include", headers: { "X-Atoll-Page": half } })).text(); } catch { /* as it should be */ }
  }
  try { await import(`${target}/ui/assets/x.js`); } catch { found.module = "refused"; }
  return found;
}

/** The cookie alone, the page's secret alone, and the secret of another log-in open nothing. */
async function halves(page) {
  const status = (context, headers) => context.evaluate(async (given) => (await fetch("/api/v1/me", { headers: given })).status, headers);
  const secret = await page.evaluate(() => sessionStorage.getItem("atoll.page"));
  check("the cookie alone opens something", (await status(page, {})) === 401);
  check("the cookie and another secret open something", (await status(page, { "X-Atoll-Page": `${secret.slice(0, -4)}AAAA` })) === 401);
  const code = (headers) => page.evaluate(async (given) => (await fetch("/api/v1/ui/codes", { method: "POST", headers: { "Content-Type": "application/json", ...given }, body: "{}" })).status, headers);
  check("a page makes codes", (await code({ "X-Atoll-Page": secret })) === 403);
  check("a token makes codes", (await code({ Authorization: `Bearer ${given.admin}` })) === 403);
  const bare = await open();
  await bare.goto(base);
  check("the secret alone opens something", (await status(bare, { "X-Atoll-Page": secret })) === 401);
  // A page whose half is of a log-in that is over asks for a new one, and shows nothing.
  await bare.evaluate(() => sessionStorage.setItem("atoll.page", "stale"));
  await bare.goto(`${base}?again#/runs/${given.run}`);
  await bare.waitForSelector("form");
  check("a stale page shows something", (await bare.locator("nav.rail").count()) === 0);
  await bare.context().close();
}

/** Addresses of all kinds show the page for nothing, or an empty one, and run no script. */
async function paths(page) {
  for (const place of [`runs/${encodeURIComponent("../../tokens")}`, "runs/%00", "runs/%zz", `runs/${"a".repeat(4000)}`, "sandboxes/%2e%2e%2f%2e%2e%2fui", "approvals/..", "policy?agent=%3Cimg%20src%3Dx%20onerror%3Dpwned%3D1%3E", "//evil.example", "runs?q=%27%22%3E%3Cscript%3Epwned%3D1%3C%2Fscript%3E"]) {
    await visit(page, place);
    await page.waitForLoadState("networkidle").catch(() => undefined);
    check(`${place} left the pages`, page.url().startsWith(base));
  }
  check("an address ran a script", !(await page.evaluate(() => globalThis.pwned)));
}

/** What one person saw is not shown to the next, by the page or by going back. */
async function swap() {
  const page = await open();
  await logIn(page, given.admin);
  await visit(page, `runs/${given.pushed}`, "parser-notes");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.fill("#token", given.reader);
  await page.keyboard.press("Enter");
  await page.waitForSelector("nav.rail");
  await page.getByText("Not found").first().waitFor();
  check("what another person saw is shown", (await page.getByText("parser-notes").count()) === 0);
  await page.context().close();
}

/** A log-out in one tab leaves nothing on the others, and a log-in is theirs too. */
async function together() {
  const page = await open();
  await logIn(page, given.admin);
  const tab = watched(await page.context().newPage());
  await visit(tab, `runs/${given.pushed}`, "parser-notes");
  await page.getByRole("button", { name: "Log out" }).click();
  await tab.waitForSelector("form");
  check("a tab shows what was there before the log-out", (await tab.getByText("parser-notes").count()) === 0);
  await logIn(page, given.reader);
  await tab.waitForSelector("nav.rail");
  await tab.getByText("Not found").first().waitFor();
  await page.context().close();
}
