// A person with a web browser: logs in to the dashboard, finds the question of an agent,
// watches the agent's browser, takes it over, types a code, gives it back and answers.
import { chromium } from "playwright-core";

const { GATEWAY: gateway, TOKEN: token, CODE: code, PICTURES: pictures } = process.env;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light" })).newPage();
page.setDefaultTimeout(40000);
async function picture(name, height) {
  if (!pictures) return;
  await page.setViewportSize({ width: 1280, height });
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${pictures}/${name}` });
  await page.setViewportSize({ width: 1280, height: 800 });
}

async function ask(path) {
  const answer = await fetch(gateway + path, { headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

await page.goto(`${gateway}/ui/`);
await page.fill("#token", token);
await page.click("button[type=submit]");
await page.waitForSelector("nav.rail");
await page.goto(`${gateway}/ui/#/approvals`);
const question = page.getByText("Type the code that was sent").first();
await question.waitFor();
await question.click();
const allow = page.getByRole("button", { name: "Allow once" });
await allow.waitFor();
if (pictures) await page.waitForTimeout(1000); // the evidence is there, line by line
await picture("browser-question.png", 580);
const answerAt = page.url();

// The browser of the agent: seen, taken over, used, given back.
const { subject } = await ask(`/api/v1/approvals/${answerAt.split("/").pop()}`);
await page.goto(`${gateway}/ui/#/browsers/${subject}`);
const screen = page.locator(".viewer > canvas[data-shown=yes]");
await screen.waitFor();
await page.getByRole("button", { name: "Take over" }).click();
await page.getByText("You drive").waitFor();
const box = await screen.boundingBox();
await page.mouse.click(box.x + box.width * 640 / 1280, box.y + box.height * 285 / 800); // the field of the code
await page.keyboard.type(code);
if (pictures) await page.waitForTimeout(1000); // the picture has all that was typed
await picture("browser-person.png", 620);
await page.keyboard.press("Enter");
await page.locator(".viewer .where", { hasText: "/boat" }).waitFor();
await page.getByRole("button", { name: "Give back" }).click();
await page.getByText("The agent drives").waitFor();

await page.goto(answerAt);
await allow.click();
await page.getByRole("dialog").getByRole("button", { name: "Allow once" }).click(); // it is asked again
for (const end = Date.now() + 20000; (await ask(`/api/v1/approvals/${answerAt.split("/").pop()}`)).state === "open";) {
  if (Date.now() > end) throw new Error("the answer does not count");
  await page.waitForTimeout(50);
}
await browser.close();
console.log("the person is done");
