// A person with a web browser: logs in to the dashboard, finds the question of an agent,
// watches the agent's browser, takes it over, types a code, gives it back and answers.
import { chromium } from "playwright-core";

const { GATEWAY: gateway, TOKEN: token, CODE: code, PICTURES: pictures } = process.env;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light" })).newPage();
page.setDefaultTimeout(40000);
const picture = async (name, height) => { if (pictures) await page.screenshot({ path: `${pictures}/${name}`, clip: { x: 0, y: 0, width: 1280, height } }); };

async function ask(method, path, body) {
  const answer = await fetch(gateway + path, { method, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

// watch shows the agent's browser in the page, and sends what the mouse and the keyboard do.
async function watch(endpoint) {
  await page.evaluate((endpoint) => {
    const canvas = document.createElement("canvas");
    canvas.id = "screen";
    document.body.replaceChildren(canvas);
    const socket = new WebSocket(endpoint);
    const send = (message) => socket.send(JSON.stringify(message));
    globalThis.view = { events: [], send };
    socket.binaryType = "blob";
    socket.onmessage = async ({ data }) => {
      if (typeof data === "string") return globalThis.view.events.push(JSON.parse(data).type);
      const bitmap = await createImageBitmap(data);
      [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
      canvas.getContext("2d").drawImage(bitmap, 0, 0);
    };
    const mouse = (event, name) => send({ type: "mouse", event: name, x: event.offsetX, y: event.offsetY, button: "left", clicks: 1 });
    canvas.onmousedown = (event) => mouse(event, "down");
    canvas.onmouseup = (event) => mouse(event, "up");
    document.onkeydown = (event) => send(event.key.length === 1 ? { type: "text", text: event.key } : { type: "key", event: "down", key: event.key, code: event.code });
  }, endpoint);
  await page.waitForFunction(() => document.getElementById("screen").width > 1000);
}

// colour is that of the head of the page which the person sees.
const colour = () => page.evaluate(() => [...document.getElementById("screen").getContext("2d").getImageData(5, 5, 1, 1).data].slice(0, 3).map((c) => Math.round(c / 16)).join());

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
await picture("browser-question.png", 580);
const answerAt = page.url();

const { browsers } = await ask("GET", "/api/v1/browsers");
const { wsEndpoint } = await ask("POST", `/api/v1/browsers/${browsers[0].name}/view`, { control: true });
await watch(wsEndpoint);
await page.evaluate(() => globalThis.view.send({ type: "take" }));
await page.waitForFunction(() => globalThis.view.events.includes("taken"));
const before = await colour();
await page.mouse.click(640, 285); // the field of the code
await page.keyboard.type(code);
if (pictures) await page.waitForTimeout(500); // the picture has all that was typed
await picture("browser-person.png", 460);
await page.keyboard.press("Enter");
for (const end = Date.now() + 20000; await colour() === before;) {
  if (Date.now() > end) throw new Error("the site does not take the code");
  await page.waitForTimeout(50);
}
await page.evaluate(() => globalThis.view.send({ type: "release" }));
await page.waitForFunction(() => globalThis.view.events.includes("released"));

await page.goto("about:blank");
await page.goto(answerAt);
await allow.click();
await page.getByRole("dialog").getByRole("button", { name: "Allow once" }).click(); // it is asked again
for (const end = Date.now() + 20000; (await ask("GET", `/api/v1/approvals/${answerAt.split("/").pop()}`)).state === "open";) {
  if (Date.now() > end) throw new Error("the answer does not count");
  await page.waitForTimeout(50);
}
await browser.close();
console.log("the person is done");
