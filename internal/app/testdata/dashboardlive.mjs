// What happens now, and a terminal, on the dashboard in a real browser. It prints what
// failed.
import { chromium } from "playwright-core";

const base = process.env.DASHBOARD_URL;
const { code, box, name, title } = JSON.parse(process.env.DASHBOARD_GIVEN);
const failures = [];
const check = (what, holds) => { if (!holds) failures.push(what); };

const browser = await chromium.launch({ executablePath: process.env.DASHBOARD_CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
context.setDefaultTimeout(60000);
await context.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
const watch = (page) => {
  page.on("console", (message) => { if (message.text().startsWith("policy:")) failures.push(message.text()); });
  page.on("pageerror", (error) => failures.push(`script: ${error.message}`));
};
const page = await context.newPage();
watch(page);
const requests = [];
page.on("request", (request) => requests.push(request.url()));
await page.goto(`${base}#code=${code}`);
await page.getByText("connected", { exact: true }).waitFor();
await page.getByText("Nothing runs.").waitFor();

// A page that stands still asks for nothing.
requests.length = 0;
await page.waitForTimeout(6000);
check(`an idle page asked for ${requests}`, requests.length === 0);

// A run that begins is shown, and its words as they come; when it is over, that too.
const ask = (method, path, body) => page.evaluate(async ([method, path, body]) => {
  const answer = await fetch(path, { method, headers: { "X-Atoll-Page": sessionStorage.getItem("atoll.page"), "Content-Type": "application/json", Prefer: "respond-async" }, body: body && JSON.stringify(body) });
  return answer.json();
}, [method, path, body]);
const run = await ask("POST", "/api/v1/ai/runs", { graphId: "waits", message: "what the page shows" });
await page.getByText("what the page shows").waitFor();
await page.goto(`${base}#/runs/${run.id}`);
await page.getByText("first words").first().waitFor();
await page.goto(`${base}#/now`);
await page.getByText("what the page shows").waitFor();
await ask("DELETE", `/api/v1/ai/runs/${run.id}`);
await page.getByText("Nothing runs.").waitFor();

// The sandbox with what it uses.
await page.goto(`${base}#/sandboxes`);
await page.locator(".line", { hasText: name }).getByText(/^\d+(\.\d)? %$/).waitFor();

// A terminal in it.
await page.goto(`${base}#/sandboxes/${box}`);
const [terminal] = await Promise.all([context.waitForEvent("page"), page.getByRole("link", { name: "Terminal" }).click()]);
watch(terminal);
const screen = terminal.locator(".xterm-rows");
await terminal.getByText(/connected to/).waitFor();
await terminal.locator(".xterm-helper-textarea").focus();
await terminal.keyboard.type("echo $((6*7))-shown\n");
await screen.getByText("42-shown").first().waitFor();

// What a program writes stays on its screen: no title, no clipboard, no link.
await terminal.keyboard.type(String.raw`printf '\033]0;pwned\007\033]2;pwned\007\033]52;c;cHduZWQ=\007\033]8;;https://evil.example/\033\\press\033]8;;\033\\\n\033P$qm\033\\done-%s\n' writing` + "\n");
await screen.getByText("done-writing").first().waitFor();
check("the title was changed", (await terminal.title()) === title);
const pages = context.pages().length;
await screen.getByText(/^press$/).last().click({ modifiers: ["Control"], timeout: 5000, force: true }).catch((error) => failures.push(error.message));
await terminal.waitForTimeout(300);
check("a link was opened", context.pages().length === pages && terminal.url().startsWith(base));

// Its size follows the window, and a page that is loaded again shows what was there.
await terminal.setViewportSize({ width: 640, height: 400 });
await terminal.waitForTimeout(300);
const cols = await terminal.evaluate(() => document.querySelector(".xterm-rows").children.length);
await terminal.keyboard.type("stty size | sed 's/^/size=/'\n");
await screen.getByText(`size=${cols} `).first().waitFor();
await terminal.reload();
await screen.getByText("42-shown").first().waitFor();
await terminal.locator(".xterm-helper-textarea").focus();
await terminal.keyboard.type("echo again-$((1+1))\n");
await screen.getByText("again-2").first().waitFor();

// The log-out ends it, and leaves nothing on its screen.
await page.getByRole("button", { name: "Log out" }).click();
await terminal.getByText("log in on the other pages").waitFor();

await browser.close();
console.log(JSON.stringify({ failures }));
