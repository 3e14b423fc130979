// What others write: every text of every answer is hostile, numbers are absurd, diffs are
// endless, and the clock of the browser is wrong.
import { check, given, section, shows, smooth, visit, watched } from "./kit.mjs";
import { full } from "./pages.mjs";

export async function hostile(logged) {
  await section("every text is hostile", () => texts(logged));
  await section("absurd numbers", () => numbers(logged));
  await section("endless diffs", () => diffs(logged));
  await section("clocks that differ", () => clocks(logged));
}

/** spoil runs in the page: text that the gateway passes on from others, in every member of every answer, ends with something hostile. Ids and words that the gateway itself chooses stay. */
function spoil(text) {
  const own = new Set(["id", "run", "type", "topic", "keys", "step", "state", "kind", "role", "status", "scope", "verdict", "bucket"]);
  const spoiled = (value, name = "") => {
    if (typeof value === "string") return value === "" || own.has(name) || /^\d{4}-\d\d-\d\dT/.test(value) || /^[[{]/.test(value) ? value : value + text;
    if (Array.isArray(value)) return own.has(name) ? value : value.map((one) => spoiled(one));
    if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, spoiled(one, key)]));
    return value;
  };
  const [parse, json] = [JSON.parse, Response.prototype.json];
  JSON.parse = (given, reviver) => spoiled(parse(given, reviver));
  Response.prototype.json = async function () { return spoiled(await json.call(this)); };
}

/** bad runs in the page: it returns text, names and attributes with characters that nobody sees, and elements that no page of ours has. */
function bad() {
  const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u202a-\u202e\u2066-\u2069\u200e\u200f]/;
  const all = [...document.querySelectorAll("body *")];
  const named = ["title", "aria-label", "placeholder"];
  return [
    ...all.filter((element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && unseen.test(node.data)) || named.some((name) => unseen.test(element.getAttribute(name) ?? ""))).map((element) => element.outerHTML.slice(0, 200)),
    ...document.querySelectorAll("main img, main script, main iframe, [onerror]"),
    ...all.flatMap((element) => [...element.attributes]).filter((attribute) => ["href", "src", "action"].includes(attribute.name) && !/^(#|\/|https:|\?)/.test(attribute.value)).map((attribute) => attribute.value),
    ...(unseen.test(document.title) ? [document.title] : []), ...(globalThis.pwned ? ["a script ran"] : []),
  ].map(String);
}

async function texts(logged) {
  const page = watched(await logged.context().newPage());
  await page.addInitScript(spoil, given.hostile);
  const texts = { ...full, now: "Build the release" }; // what waited for a person was answered
  for (const [place, text] of Object.entries(texts)) {
    await visit(page, place, text);
    if (!["nowhere", "browsers"].includes(place)) await page.locator("main").getByText("<img src=x onerror").filter({ visible: true }).first().waitFor().catch(() => check(`${place} shows no text of others`, false));
    await page.evaluate(() => { for (const more of document.querySelectorAll("main details")) more.open = true; });
    const found = await page.evaluate(bad);
    check(`${place}: ${JSON.stringify(found.slice(0, 5))}`, found.length === 0);
  }
  await page.close();
}

/** Money that is negative, infinite or no number, and times of another age, make no plot that breaks. */
async function numbers(logged) {
  const page = watched(await logged.context().newPage());
  const at = new Date().toISOString();
  const points = ["1e999", "-5", "1e300", "null", '"7"', "0.1"].map((money, i) => `{"at":"${i === 5 ? "0001-01-01T00:00:00Z" : at}","key":"m${i}","calls":-1,"tokens":1e300,"microUSD":${money},"provisional":0,"unpriced":0}`);
  await page.route(/\/api\/v1\/costs\/series/, (route) => route.fulfill({ contentType: "application/json", body: `{"points":[${points}]}` }));
  await visit(page, "cost", "By model");
  await page.locator(".plot").waitFor();
  const drawn = await page.locator(".plot rect, .plot line").evaluateAll((shapes) => shapes.flatMap((shape) => [...shape.attributes]).filter((attribute) => /NaN|Infinity/.test(attribute.value)).length);
  check(`${drawn} shapes have no size`, drawn === 0);
  await page.close();
}

/** Diffs of any length and of what is no text are shown in part, and hold the page up for no moment that a person notices. */
async function diffs(logged) {
  const page = watched(await logged.context().newPage());
  const lines = Array.from({ length: 50000 }, (_, i) => `+line ${i} ${"x".repeat(60)}`).join("\n");
  const mail = (n, body) => `From ${String(n).repeat(40)} Mon Sep 17 00:00:00 2001\nFrom: a <a@b>\nSubject: [PATCH] change ${n}\n\n---\n${body}\n`;
  const patch = mail(1, `diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1,50000 @@\n${lines}`) + mail(2, `diff --git a/b b/b\nGIT binary patch\nliteral 9\nzc$@*${"\u0000\u0007".repeat(50)}`) + mail(3, `diff --git a/c b/c\n+${"y".repeat(1 << 20)}`);
  await page.route(/\/api\/v1\/relay\/[^/]+\/patch/, (route) => route.fulfill({ json: { patch, cut: false } }));
  await smooth(page, "endless diffs", async () => {
    await visit(page, `runs/${given.pushed}?tab=changes`, "change 1");
    await shows(page, "+50000", "the counts of a long diff");
    await shows(page, "GIT binary patch", "what is no text");
    await shows(page, "more characters", "a line of a megabyte");
    const nodes = await page.evaluate(() => document.querySelectorAll("main *").length);
    check(`${nodes} elements show a diff of 50,000 lines`, nodes < 2000);
    await page.locator(".lines.diff").first().evaluate((box) => { box.scrollTop = box.scrollHeight; });
    await shows(page, "line 49999", "the end of a long diff");
  });
  await page.close();
}

/** A browser whose clock is three hours off shows the times of the gateway. */
async function clocks(logged) {
  for (const hours of [-3, 3]) {
    const page = watched(await logged.context().newPage());
    await page.addInitScript((by) => {
      const Real = Date;
      globalThis.Date = class extends Real {
        constructor(...args) { super(...(args.length === 0 ? [Real.now() + by] : args)); }
        static now() { return Real.now() + by; }
      };
    }, hours * 3600000);
    await visit(page, "runs", "Write notes about the parser");
    const times = await page.locator("[role=grid] time").allInnerTexts();
    check(`with a clock ${hours} hours off runs began ${times}`, times.length > 0 && times.every((time) => /^now$|^\d+ (s|min) ago$/.test(time)));
    const took = await page.locator("[role=grid] .line").first().innerText();
    check(`a run took ${took}`, !/\d+ h/.test(took));
    await page.close();
  }
}
