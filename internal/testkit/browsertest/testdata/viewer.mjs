// The page that shows a browser, and the one of the dashboard, in a real web browser: a
// person sees the sandboxed page, takes it over, types into a form and gives it back. It
// prints what failed.
import { chromium } from "playwright-core";

const { page: address, dashboard, name, kind, places, shot } = JSON.parse(process.env.VIEWER_GIVEN);
const failures = [];
const check = (what, holds) => { if (!holds) failures.push(what); };
const browser = await chromium.launch({ executablePath: process.env.VIEWER_CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1400, height: 1000 } });
context.setDefaultTimeout(60000);
await context.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));

async function open(url) {
  const page = await context.newPage();
  page.on("console", (message) => { if (message.text().startsWith("policy:") || message.text().includes("Content Security Policy")) failures.push(message.text()); });
  page.on("pageerror", (error) => failures.push(`script: ${error.message}`));
  page.on("request", (request) => check(`a ticket in the address ${request.url()}`, !/\/ui\/.*\/(view|vnc)\//.test(request.url()) && !request.headers()["referer"]?.includes(name)));
  await page.goto(url);
  return page;
}

const surface = kind === "vnc" ? ".viewer .window[data-shown=yes] canvas" : ".viewer > canvas[data-shown=yes]";

// place is where a point of the sandboxed page, in parts of its size, is in ours.
async function place(page, at) {
  const box = await page.locator(surface).boundingBox();
  return [box.x + at.x * box.width, box.y + at.y * box.height];
}

// colours counts the colours of the picture: a page that is shown has more than one.
const colours = (page) => page.locator(surface).evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let at = 0; at < data.length && seen.size < 10; at += 4 * 97) seen.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
  return seen.size;
});

// picture is a number that is another when the picture is.
const picture = (page) => page.locator(surface).evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let sum = 0;
  for (let at = 0; at < data.length; at += 4) sum = (sum * 31 + data[at]) | 0;
  return sum;
});

// focus clicks at the form and waits until it is shown, by its frame or its caret: a window
// manager gives the keyboard to a window after the click, and keys before that are nobody's.
async function focus(page) {
  const before = await picture(page);
  await page.mouse.click(...await place(page, places.input));
  for (const end = Date.now() + 10000; Date.now() < end && (await picture(page)) === before;) await page.waitForTimeout(50);
}

async function drive(page, typed) {
  await page.locator(surface).waitFor();
  await page.waitForFunction((selector) => document.querySelector(selector).width > 300, surface);
  await page.getByText("The agent drives").waitFor();
  let seen = 0;
  for (const end = Date.now() + 60000; seen <= 1 && Date.now() < end; seen = await colours(page)) await page.waitForTimeout(50);
  check("nothing is shown", seen > 1);
  await page.getByRole("button", { name: "Take over" }).click();
  await page.getByText("You drive").waitFor();
  await focus(page);
  await page.keyboard.type(typed);
  await page.mouse.move(...await place(page, places.button));
  await page.mouse.wheel(0, 200);
  check(`refused: ${await page.locator(".viewer [role=alert]").allTextContents()}`, (await page.locator(".viewer [role=alert]").count()) === 0);
  if (shot) await page.screenshot({ path: shot });
  await page.getByRole("button", { name: "Give back" }).click();
  await page.getByText("The agent drives").waitFor();
}

// The page of a ticket: it is gone from the address, and good once.
const view = await open(address);
await drive(view, "Bea");
check("the ticket stays in the address", !view.url().includes("#"));
if (kind === "view") check("the address is not shown", (await view.locator(".where code").textContent()) === "http://shop.example/");
const again = await open(address);
await again.getByText("good once").waitFor();
await again.close();
await view.close();

// The page of the dashboard.
const pages = await open(dashboard);
await pages.waitForSelector("nav.rail");
await pages.getByRole("link", { name: "Browsers" }).click();
await pages.getByText(name).first().click();
await drive(pages, "Cleo");
await pages.close();

await browser.close();
console.log(JSON.stringify({ failures }));
