// What the sections of the test of the dashboard share: one browser, checks, and axe.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

export const base = process.env.DASHBOARD_URL;
export const origin = new URL(base).origin;
export const given = JSON.parse(process.env.DASHBOARD_GIVEN);
export const patience = 60000;

/** seen is every address and header of the session that may hold a secret. */
export const seen = [];

const sections = [];
let current;

/** check records a failure of the section under way. */
export function check(what, holds) {
  if (holds) return;
  if (current === undefined) throw new Error(what);
  current.failures.push(what);
}

/** section runs a part of the test; what it throws is a failure. */
export async function section(name, part) {
  current = { name, failures: [], ms: 0 };
  sections.push(current);
  const begun = Date.now();
  try {
    await part();
  } catch (error) {
    current.failures.push(String(error?.stack ?? error).slice(0, 2000));
  }
  current.ms = Date.now() - begun;
}

/** finish closes the browser and prints what every section found. */
export async function finish() {
  await browser.close();
  console.log(`\nDASHBOARD ${JSON.stringify(sections)}`);
}

const browser = await chromium.launch({ executablePath: process.env.DASHBOARD_CHROMIUM, args: ["--no-sandbox", "--host-resolver-rules=MAP rebound.example 127.0.0.1"] });

/** A tab that watches for reports of its policy, errors of scripts and errors of the console that are not expected. */
export async function open(options = {}, expected = undefined) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(patience);
  await context.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  return watched(await context.newPage(), expected);
}

/** watched fails the section for what a tab reports. Answers that are problems are written to the console by the browser itself. */
export function watched(page, expected = /Failed to load resource/) {
  page.on("console", (message) => { if (message.type() === "error" && !expected.test(message.text())) check(`console: ${message.text()}`, false); });
  page.on("pageerror", (error) => check(`script: ${error.message}`, false));
  page.on("request", (request) => seen.push(request.url(), request.headers()["referer"] ?? ""));
  return page;
}

/** logIn logs a tab in with a token. */
export async function logIn(page, token, at = base) {
  await page.goto(at);
  await page.fill("#token", token);
  await page.keyboard.press("Enter");
  await page.waitForSelector("nav.rail");
}

/** visit opens a place of the pages and waits for a text of it. */
export async function visit(page, place, text, at = base) {
  await page.goto(`${at}#/${place}`);
  if (text !== undefined) await shows(page, text, place);
}

/** shows waits for a text of a page. */
export async function shows(page, text, where) {
  await page.locator("main").getByText(text).filter({ visible: true }).first().waitFor().catch(() => check(`${where} does not show ${text}: ${String(page.url())}`, false));
}

/** mostTask is how much CPU time, in milliseconds, one task of a page may take: longer ones are noticed. */
const mostTask = 200;

/** smooth does something and checks that no task of a page took long, by CPU time, which other load does not change. */
export async function smooth(page, where, act) {
  await browser.startTracing(page, { categories: ["disabled-by-default-devtools.timeline", "__metadata"] });
  try {
    await act();
  } finally {
    const { traceEvents } = JSON.parse(String(await browser.stopTracing()));
    const pages = new Set(traceEvents.filter((event) => event.name === "thread_name" && event.args.name === "CrRendererMain").map((event) => event.tid));
    const took = traceEvents.filter((event) => event.name === "RunTask" && pages.has(event.tid) && event.tdur !== undefined).map((event) => event.tdur / 1000);
    check(`${where}: a task took ${Math.round(Math.max(...took))} ms`, took.length > 0 && Math.max(...took) <= mostTask);
  }
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** look lets axe examine a page, past its policy, by the debugger. */
export async function look(page, where, rules) {
  if (!(await page.evaluate(() => "axe" in globalThis))) {
    const session = await page.context().newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: axe });
    await session.detach();
  }
  const options = { resultTypes: ["violations"], ...(rules ? { runOnly: { type: "rule", values: rules } } : {}) };
  const found = await page.evaluate(async (given) => (await globalThis.axe.run(document, given)).violations.map((v) => `${v.id}: ${v.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" | ")}`), options);
  for (const violation of found) check(`axe, ${where}: ${violation}`, false);
}
