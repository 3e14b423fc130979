// Ten thousand rows, a hundred thousand events, lines of megabytes.
import { check, given, logIn, open, section, shows, smooth, visit } from "./kit.mjs";

const mostRows = 60;

export async function many() {
  const page = await open();
  await logIn(page, given.crowd);
  await section("10,000 rows", () => rows(page));
  await section("100,000 events and long lines", () => long(page));
  await page.context().close();
}

async function rows(page) {
  for (const [place, label, text] of [["sessions", "Sessions", "crowd-"], ["runs", "Runs", "10,000 runs"]]) {
    await visit(page, place, text);
    await toTheEnd(page, page.getByRole("grid", { name: label }));
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`#/${place}/.*(run-|crowd-)`));
  }
}

/** toTheEnd reaches the end of a list of ten thousand, page by page. */
async function toTheEnd(page, grid) {
  await grid.focus();
  const element = await grid.elementHandle();
  for (let count = 0; count < 10001;) {
    await page.keyboard.press("End");
    await page.waitForFunction(([list, before]) => Number(list.getAttribute("aria-rowcount")) > before, [element, count]);
    count = Number(await grid.getAttribute("aria-rowcount"));
  }
  for (const where of [0, 3000, 9000, 1e9]) {
    await grid.evaluate((list, top) => { list.scrollTop = top; }, where);
    await page.waitForFunction((list) => list.querySelectorAll("[role=row]").length > 5, element);
    const rows = await grid.locator("[role=row]").count();
    check(`${rows} rows are in the document`, rows <= mostRows);
  }
  check(`the list ends at ${await grid.getAttribute("aria-rowcount")}`, (await grid.getAttribute("aria-rowcount")) === "10001");
  await page.keyboard.press("End");
}

/** boxesAndQuestions looks at the lists of ten thousand sandboxes and questions. */
export async function boxesAndQuestions() {
  const page = await open();
  await logIn(page, given.crowd);
  for (const [place, label, text] of [["sandboxes", "Sandboxes", "10,000 in all"], ["approvals", "Waiting", "apply change"]]) {
    await section(`10,000 ${place}`, async () => {
      await visit(page, place, text);
      await toTheEnd(page, page.getByRole("grid", { name: label }));
      await page.keyboard.press("Enter");
      await page.waitForURL(new RegExp(`#/${place}/.*crowd-`));
    });
  }
  await page.context().close();
}

/** What is long is cut or shown in part, and holds the page up for no moment that a person notices. */
async function long(page) {
  await smooth(page, "100,000 events", async () => {
    await visit(page, `runs/${given.long}`, "of 100,000");
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    check(`the page has ${nodes} elements`, nodes < 4000);
    await page.getByRole("button", { name: "Later" }).first().click();
    await shows(page, "151 to 300", "the next steps");
  });
  await smooth(page, "an answer of 10 MB", async () => {
    await visit(page, `runs/${given.wide}`, "more characters");
    const shown = await page.evaluate(() => document.querySelector("main")?.textContent?.length ?? 0);
    check(`${shown} characters of a line of megabytes are in the document`, shown < 200000);
  });
}
