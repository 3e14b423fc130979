// Looks at the dashboard in a real browser and prints what it measured, a line of JSON for
// each step that it is told on standard input.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [base, code, executablePath] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
page.setDefaultTimeout(60000);
const cdp = await page.context().newCDPSession(page);
await cdp.send("Network.enable");
await cdp.send("Performance.enable");
let scripts = 0, requests = 0, bytes = 0, frames = 0;
const kinds = new Map();
cdp.on("Network.responseReceived", (e) => kinds.set(e.requestId, e));
cdp.on("Network.loadingFinished", (e) => {
  const answer = kinds.get(e.requestId);
  if (answer?.type === "Script") scripts += e.encodedDataLength;
  if (answer?.response.url.includes("/api/") || answer?.response.url.endsWith("/ready")) { requests++; bytes += e.encodedDataLength; }
});
cdp.on("Network.webSocketFrameReceived", (e) => { frames += e.response.payloadData.length; });
const busy = async () => {
  const { metrics } = await cdp.send("Performance.getMetrics");
  return metrics.find((m) => m.name === "TaskDuration").value;
};

const steps = {
  async first() {
    await page.goto(`${base}#code=${code}`);
    await page.getByText("connected", { exact: true }).waitFor();
    await page.getByText("Runs under way").waitFor();
    return { scripts };
  },
  async page(name, text) {
    await page.goto("about:blank");
    [requests, bytes, frames] = [0, 0, 0];
    await page.goto(`${base}#/${name}`);
    await page.getByText(text).first().waitFor();
    await page.waitForTimeout(1000);
    return { requests, bytes: bytes + frames };
  },
  async rows() {
    await page.goto(`${base}#/runs`);
    await page.locator("[role=grid] .line").first().waitFor();
    let most = 0;
    for (let i = 0; i < 12; i++) {
      await page.locator("[role=grid]").evaluate((grid) => { grid.scrollTop = grid.scrollHeight; });
      await page.waitForTimeout(250);
      most = Math.max(most, await page.locator("[role=grid] .line").count());
    }
    return { rows: most, listed: Number(await page.locator("[role=grid]").getAttribute("aria-rowcount")) - 1 };
  },
  async live(seconds) {
    await page.goto(`${base}#/sandboxes`);
    await page.getByText(/^\d+(\.\d)? %$/).first().waitFor();
    await page.waitForTimeout(3000);
    frames = 0;
    const [begun, before] = [Date.now(), await busy()];
    console.log(JSON.stringify({ begun: true }));
    await page.waitForTimeout(Number(seconds) * 1000);
    const took = (Date.now() - begun) / 1000;
    return { busy: (await busy() - before) / took, bytes: frames / took };
  },
  async delay(run) {
    await page.goto(`${base}#/runs/${run}`);
    await page.evaluate(() => {
      globalThis.delays = [];
      const seen = new Set();
      new MutationObserver(() => {
        const now = Date.now();
        for (const [text, at] of document.querySelector("main").textContent.matchAll(/at=(\d{13})/g)) {
          if (!seen.has(text)) globalThis.delays.push(now - Number(at));
          seen.add(text);
        }
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    await page.getByText("over", { exact: true }).first().waitFor().catch(() => undefined);
    return { delays: (await page.evaluate(() => globalThis.delays)).slice(10) };
  },
};

console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...args] = JSON.parse(line);
  console.log(JSON.stringify(await steps[name](...args)));
}
await browser.close();
