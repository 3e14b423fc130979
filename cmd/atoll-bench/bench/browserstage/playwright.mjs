// Playwright, told what to do a line at a time; each answer is how many milliseconds it took.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const pages = {};
for (const [name, port] of Object.entries(JSON.parse(process.argv[2]))) {
  const browser = await chromium.connectOverCDP(`http://127.0.0.1:${port}`);
  pages[name] = await browser.contexts()[0].newPage();
}
const address = process.argv[3];
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [action, name] = line.split(" ");
  const start = performance.now();
  if (action === "load") {
    await pages[name].goto(address, { waitUntil: "load" });
    console.log(await pages[name].evaluate(() => performance.getEntriesByType("navigation")[0].loadEventEnd));
  } else {
    await pages[name].getByRole("button").click();
    console.log(performance.now() - start);
  }
}
process.exit(0);
