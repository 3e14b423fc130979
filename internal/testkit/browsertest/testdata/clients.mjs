// Programs of others, as they are published, drive one browser through the gateway.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import CDP from "chrome-remote-interface";
import { chromium } from "playwright-core";
import puppeteer from "puppeteer-core";

const { GATEWAY, TOKEN, BROWSER, SHOP } = process.env;
const base = `${GATEWAY}/api/v1/browsers/${BROWSER}`;
const headers = { Authorization: `Bearer ${TOKEN}` };

async function ticket() {
  const answer = await fetch(`${base}/cdp`, { method: "POST", headers });
  assert.equal(answer.status, 200, await answer.clone().text());
  return (await answer.json()).wsEndpoint;
}

async function playwright() {
  const browser = await chromium.connectOverCDP(base, { headers });
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(SHOP);
  assert.equal(await page.title(), "Shop");
  await page.getByLabel("Name").fill("Bob");
  assert.equal(await page.getByLabel("Name").inputValue(), "Bob");
  await context.addCookies([{ name: "own", value: "1", url: SHOP }]);
  assert.equal((await context.cookies()).length, 1);
  await assert.rejects(page.goto("file:///etc/passwd"), /is no address of a web page/);
  assert.ok((await page.screenshot()).length > 1000);
  const session = await browser.newBrowserCDPSession();
  await assert.rejects(session.send("SystemInfo.getInfo"), /is refused/);
  return { browser, context };
}

async function puppeteerClient() {
  const browser = await puppeteer.connect({ browserWSEndpoint: await ticket() });
  const page = await browser.newPage();
  await page.goto(SHOP);
  assert.equal(await page.$eval("h1", (e) => e.textContent), "Fruit");
  // The context of the other program, its page and its cookies are not there.
  assert.ok(!(await browser.cookies()).some((c) => c.name === "own"));
  await page.close();
  await browser.disconnect();
}

async function plain() {
  const client = await CDP({ target: await ticket(), local: true });
  const { targetInfos } = await client.Target.getTargets();
  assert.ok(!targetInfos.some((t) => t.url.startsWith(SHOP)), JSON.stringify(targetInfos));
  const { targetId } = await client.Target.createTarget({ url: "about:blank" });
  const { sessionId } = await client.Target.attachToTarget({ targetId, flatten: true });
  const { result } = await client.Runtime.evaluate({ expression: "6 * 7" }, sessionId);
  assert.equal(result.value, 42);
  // Neither a script nor a page opens files of the sandbox.
  await client.Page.enable(sessionId);
  await client.Runtime.evaluate({ expression: "location.href = 'file:///etc/passwd'" }, sessionId);
  await client.Runtime.evaluate({ expression: "window.open('file:///etc/passwd'); window.open('chrome://version')", userGesture: true }, sessionId);
  const after = (await client.Target.getTargets()).targetInfos;
  assert.ok(!after.some((t) => /^(file|chrome):/.test(t.url)), JSON.stringify(after));
  for (const method of ["Browser.close", "Browser.crash", "Tracing.getCategories", "Target.exposeDevToolsProtocol"]) {
    await assert.rejects(client.send(method, method === "Target.exposeDevToolsProtocol" ? { targetId } : {}), /is refused/, method);
  }
  await assert.rejects(client.send("Target.createBrowserContext", { proxyServer: "direct://" }), /is refused/);
  await assert.rejects(client.send("Runtime.evaluate", { expression: "1" }, "0123456789ABCDEF0123456789ABCDEF"), /no such session/);
  await client.Target.closeTarget({ targetId });
  await client.close();
  return sessionId;
}

async function mcp() {
  const args = ["node_modules/@playwright/mcp/cli.js", "--cdp-endpoint", base, "--cdp-header", `Authorization: Bearer ${TOKEN}`];
  const server = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  let last = 0;
  const ask = async (method, params) => {
    const id = ++last;
    server.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    for (;;) {
      const answer = JSON.parse((await lines.next()).value);
      if (answer.id === id && (answer.result || answer.error)) return answer.result ?? assert.fail(JSON.stringify(answer.error));
    }
  };
  await ask("initialize", { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "test", version: "1" } });
  server.stdin.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }) + "\n");
  const opened = await ask("tools/call", { name: "browser_navigate", arguments: { url: SHOP } });
  assert.match(JSON.stringify(opened), /Shop/);
  const seen = await ask("tools/call", { name: "browser_snapshot", arguments: {} });
  assert.match(JSON.stringify(seen), /Fruit/);
  server.stdin.end();
  server.kill();
}

const one = await playwright();
await puppeteerClient();
await plain();
await mcp();
// What the others did has not disturbed the first.
assert.equal(await one.context.pages()[0].title(), "Shop");
await one.browser.close();
console.log("all clients work");
