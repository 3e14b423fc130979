// The gateway answers with errors, slowly, or not at all, under pages that are open.
import { connect, createServer } from "node:net";
import { check, given, logIn, look, open, origin, patience, section, shows, visit, watched } from "./kit.mjs";

const places = ["now", "runs", "sessions", "sandboxes", "approvals", "code", "cost", "audit", "catalogue", "policy", "access", "health", "browsers", `runs/${given.run}`, `sessions/${encodeURIComponent(given.session)}`, `sandboxes/${given.sandbox}`];
const problem = { type: "about:blank", title: "Internal Server Error", status: 500, code: "internal", detail: "the disk is on fire", hint: "call the fire brigade", requestId: "req-fire" };

/** nobody is what a browser says while it tries to connect and nobody listens. */
const nobody = /Failed to load resource|WebSocket connection to .* failed/;

export async function faults(page) {
  await section("errors", () => errors(page));
  await section("slow answers", () => slow(page));
  await section("the gateway goes away and comes back", away);
}

/** A page goes on by itself, logged in, when the gateway was restarted under it. */
export async function restart(logged) {
  await section("the gateway is restarted", async () => {
    const page = watched(await logged.context().newPage(), nobody);
    await visit(page, "now", "Nothing runs");
    await logged.close();
    const answer = await fetch(given.restart, { method: "POST" });
    check(`the gateway was not restarted: ${answer.status}`, answer.ok);
    await page.getByText("connected", { exact: true }).waitFor();
    await visit(page, "runs", "Write notes");
    check("the log-in ended with the gateway", (await page.locator("nav.rail").count()) === 1);
  });
}

/** Every page says what the problem is, what to do, and the id that finds it in the log. */
async function errors(logged) {
  const page = watched(await logged.context().newPage());
  await page.routeWebSocket(/\/api\/v1\/live/, (socket) => socket.onMessage((text) => {
    const message = JSON.parse(text);
    if (message.type === "login") socket.send(JSON.stringify({ type: "ready" }));
    if (message.type === "subscribe") socket.send(JSON.stringify({ type: "problem", topic: message.topic, problem }));
  }));
  await page.route(/:\d+\/(api\/v1\/(?!me)|ready|health)/, (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify(problem) }));
  for (const place of places) {
    await visit(page, place, "the disk is on fire");
    if (place !== "health") await shows(page, "req-fire", `${place}, error`);
  }
  await look(page, "errors");
  await page.unroute(/:\d+\/(api\/v1\/(?!me)|ready|health)/);
  // An answer that is no JSON at all is a problem too, and no error of a script.
  await page.route(/\/api\/v1\/costs/, (route) => route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>" }));
  await visit(page, "cost", "answered 502");
  await page.close();
}

/** While nothing is there yet the page says that it loads; what is there stays when an address changes. */
async function slow(logged) {
  const page = watched(await logged.context().newPage());
  await page.routeWebSocket(/\/api\/v1\/live/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => setTimeout(() => socket.send(message), 1200));
  });
  await page.route(/\/api\/v1\/(?!me)/, async (route) => { await new Promise((done) => setTimeout(done, 1200)); await route.continue().catch(() => undefined); });
  for (const place of ["runs", "audit", `runs/${given.run}`]) {
    await page.goto("about:blank");
    await visit(page, place);
    await page.locator("main [aria-busy=true]").first().waitFor();
    await page.locator("main [role=grid], main .timeline").first().waitFor();
  }
  await page.close();
}

/** A page keeps what it shows while the gateway is away, says so, and goes on by itself. */
async function away() {
  const relay = await listen(0);
  const at = `http://127.0.0.1:${relay.port}/ui/`;
  const page = await open({}, nobody);
  await logIn(page, given.admin, at);
  await visit(page, "runs", "Write notes", at);
  await relay.close();
  await page.locator(".connection.bad").waitFor();
  check("the list is gone", (await page.getByText("Write notes").count()) > 0);
  await page.goto(`${at}#/health`);
  await page.getByRole("button", { name: "Load it again" }).waitFor();
  const again = await listen(relay.port);
  await page.getByRole("button", { name: "Load it again" }).click();
  await page.getByText("connected", { exact: true }).waitFor();
  await shows(page, "configuration", "health after the gateway is back");
  await page.context().close();
  await again.close();
}

/** listen passes connections on to the gateway until it is closed, which ends them. */
async function listen(port) {
  const open = new Set();
  const server = createServer((inward) => {
    const outward = connect(Number(new URL(origin).port), "127.0.0.1");
    for (const socket of [inward, outward]) {
      open.add(socket);
      socket.on("error", () => undefined).on("close", () => { open.delete(socket); inward.destroy(); outward.destroy(); });
    }
    inward.pipe(outward).pipe(inward);
  });
  const deadline = Date.now() + patience;
  for (;;) {
    try {
      await new Promise((done, fail) => server.once("error", fail).listen(port, "127.0.0.1", done));
      break;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
  return { port: server.address().port, close: () => new Promise((done) => { server.close(done); for (const socket of open) socket.destroy(); }) };
}
