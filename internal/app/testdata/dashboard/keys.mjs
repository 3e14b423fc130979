// The keyboard alone, and the width of a phone.
import { base, check, given, look, section, visit } from "./kit.mjs";

export async function keys(page) {
  await section("keyboard", () => keyboard(page));
  await section("phone", () => phone(page));
}

async function keyboard(page) {
  await page.goto(`${base}#/now`);
  await page.locator("nav.rail").waitFor();
  for (const [key, place] of [["r", "runs"], ["e", "sessions"], ["s", "sandboxes"], ["b", "browsers"], ["a", "approvals"], ["d", "code"], ["c", "cost"], ["u", "audit"], ["t", "catalogue"], ["p", "policy"], ["x", "access"], ["h", "health"], ["n", "now"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.waitForURL(new RegExp(`#/${place}$`));
  }
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.locator("[role=grid] [role=row]").nth(2).waitFor();
  // j goes into the list, marks are made with x, and Enter opens.
  await page.keyboard.press("j");
  await page.locator("[role=row].selected").waitFor();
  await page.keyboard.press("x");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByText("Compare two").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/runs\/(run|task)-/);
  await page.locator(".tabs").waitFor();
  await page.locator("[role=tab][aria-selected=true]").focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForURL(/tab=changes/);
  await page.keyboard.press("Escape");
  await page.waitForURL(/#\/runs$/);
  await page.locator("main input[type=search]").waitFor();
  await page.keyboard.press("/");
  check("/ does not filter", await page.evaluate(() => document.activeElement?.getAttribute("type") === "search"));
  await page.keyboard.type("parser");
  await page.waitForURL(/q=parser/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await look(page, "help");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
  await palette(page);
}

async function palette(page) {
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Go to" }).waitFor();
  await page.keyboard.type("notes about");
  await page.getByRole("option", { name: /Write notes about the parser/ }).first().waitFor();
  await look(page, "palette");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`#/runs/${given.pushed}`));
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Go to" }).waitFor();
  await page.keyboard.type("sandb");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/sandboxes$/);
  // Everything that can be used is reached with the tabulator, and is seen.
  await visit(page, "runs", "Start a run");
  await page.locator("[role=grid]").first().waitFor();
  const reached = new Set();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement?.getAttribute("role") ?? document.activeElement?.textContent?.slice(0, 20) ?? ""));
  }
  for (const name of ["Now", "Start a run", "grid", "Log out"]) check(`the tabulator does not reach ${name}: ${JSON.stringify([...reached])}`, [...reached].some((text) => text.includes(name)));
}

async function phone(page) {
  await page.setViewportSize({ width: 390, height: 800 });
  for (const [place, text] of [["now", "waiting for you"], ["approvals", "Answered"], [`runs/${given.run}`, "Timeline"], ["runs", "Task"], [`sessions/${encodeURIComponent(given.session)}`, "main.go"], ["cost", "Spent"]]) {
    await visit(page, place, text);
    const wide = await page.evaluate(() => ({ page: document.documentElement.scrollWidth, main: document.querySelector("main")?.scrollWidth ?? 0 }));
    check(`${place} is wider than a phone: ${JSON.stringify(wide)}`, wide.page <= 390 && wide.main <= 390);
    await look(page, `${place}, phone`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}
