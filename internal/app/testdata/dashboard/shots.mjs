// Takes the pictures of docs/dashboard.md.
import { base, given, open, shows, visit } from "./kit.mjs";

const page = await open({ colorScheme: "dark", viewport: { width: 1280, height: 720 } });
await page.goto(`${base}#code=${given.code}`);
await page.waitForSelector("nav.rail");

async function take(name, place, text, scheme, before = async () => undefined) {
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  await visit(page, place, text);
  await before();
  await page.waitForTimeout(700);
  await page.mouse.move(700, 5);
  await page.screenshot({ path: `${process.env.DASHBOARD_SHOTS}/dashboard-${name}.png` });
}

await take("now", "now", "Read the papers", "dark", () => shows(page, "ready", "now"));
await take("run", `runs/${given.agentRun}`, "Timeline", "dark", async () => {
  for (const tool of await page.locator(".tool > summary").all()) await tool.click();
  await page.locator("main").evaluate((main) => { main.scrollTop = 190; });
});
await take("session", `sessions/${encodeURIComponent(given.session)}`, "main.go", "light", () => page.locator("summary", { hasText: "exec" }).first().click());
await take("approval", `approvals?run=${given.held}`, "protected-path", "dark");
await take("cost", "cost?days=30&by=model", "By model", "light");
await take("runs", "runs", "Port the parser", "light");
await page.context().browser().close();
