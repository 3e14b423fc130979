// What a client does with a gateway that misbehaves.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import * as atoll from "../dist/index.js";

// serve answers requests until the test has ended, and returns a client and what was asked.
async function serve(t, answer) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    answer(request, response, asked.length);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new atoll.Client({ url: `http://127.0.0.1:${server.address().port}`, token: "secret" });
  t.after(() => {
    client.close();
    server.closeAllConnections();
    server.close();
  });
  return { asked, client };
}

const json = (response, status, body) => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
const made = { id: "aaaa", containerName: "box", portToken: "p" };

test("what may have been carried out is not sent again", async (t) => {
  const { asked, client } = await serve(t, (request) => request.resume().on("end", () => request.socket.destroy()));
  await assert.rejects(atoll.Sandbox.create({ client }), atoll.UnreachableError);
  assert.deepEqual(asked, ["POST /api/v1/sandboxes"]);
});

test("what only looks is sent again", async (t) => {
  const { asked, client } = await serve(t, (request, response, count) => (count < 3 ? request.socket.destroy() : json(response, 200, made)));
  assert.equal((await atoll.Sandbox.connect("aaaa", { client })).id, "aaaa");
  assert.equal(asked.length, 3);
});

test("what is never answered ends", async (t) => {
  const { asked, client } = await serve(t, (request) => request.socket.destroy());
  await assert.rejects(atoll.Sandbox.connect("aaaa", { client }), { name: "UnreachableError", code: "unreachable", status: 0 });
  assert.equal(asked.length, 3);
});

test("nobody listens", async () => {
  const client = new atoll.Client({ socketPath: "/nowhere/gateway.sock" });
  await assert.rejects(atoll.Sandbox.create({ client }), { name: "UnreachableError", hint: "is it running?" });
});

test("refusals are errors with a hint", async (t) => {
  const problems = { 401: "ForbiddenError", 404: "NotFoundError", 409: "ConflictError", 422: "InvalidRequestError", 429: "LimitError", 501: "AtollError" };
  const { client } = await serve(t, (request, response) => {
    const status = Number(request.url.split("/").at(-1));
    json(response, status, { code: "c", status, detail: "d", hint: "h", errors: [{ pointer: "/p", detail: "wrong" }] });
  });
  for (const [status, name] of Object.entries(problems)) {
    await assert.rejects(atoll.Sandbox.connect(status, { client }), { name, code: "c", status: Number(status), hint: "h", fields: { "/p": "wrong" }, message: "d; /p: wrong (hint: h)" });
  }
});

test("a refusal without a problem is an error too", async (t) => {
  const { client } = await serve(t, (_, response) => response.writeHead(502).end("<html>"));
  await assert.rejects(atoll.Sandbox.create({ client }), { name: "AtollError", code: "not_a_problem", status: 502 });
});

test("a command waits while a writer's promise is open", async (t) => {
  let sent = 0;
  const total = 64 << 20;
  const { client } = await serve(t, (request, response) => {
    if (!request.url.endsWith("/exec")) return json(response, 200, made);
    const event = `event: stdout\ndata: ${JSON.stringify({ data: Buffer.alloc(1 << 16, "x").toString("base64") })}\n\n`;
    const more = () => {
      for (; sent < total; sent += 1 << 16) if (!response.write(event)) return response.once("drain", more), (sent += 1 << 16);
      response.end('event: ended\ndata: {"exitCode":0,"stdout":"","stderr":"","durationMs":1}\n\n');
    };
    more();
  });
  const box = await atoll.Sandbox.create({ client });
  let [got, most] = [0, 0];
  const onStdout = async (text) => {
    got += text.length;
    most = Math.max(most, sent - got);
    if (got % (8 << 20) === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  assert.equal((await box.run("x", { onStdout })).exitCode, 0);
  assert.equal(got, total);
  assert.ok(most < total / 2, `${most} bytes were ahead of the reader`);
});

test("a stream that ends early is an error, and one that is given up ends", async (t) => {
  let closed;
  const ended = new Promise((resolve) => (closed = resolve));
  const { client } = await serve(t, (request, response) => {
    if (request.url.endsWith("/output")) return response.on("close", closed).write('id: 5\nevent: stdout\ndata: {"data":"eA=="}\n\n');
    if (!request.url.endsWith("/exec")) return json(response, 200, { ...made, pid: 1, command: "x", running: true });
    response.end('event: stdout\ndata: {"data":"eA=="}\n\n');
  });
  const box = await atoll.Sandbox.create({ client });
  await assert.rejects(box.run("x", { onStdout: () => {} }), { code: "stream_ended" });
  for await (const { id, data } of (await box.process("p")).output()) {
    assert.deepEqual([id, data.toString()], ["5", "x"]);
    break;
  }
  await ended;
});

test("a command that is given up is an AbortError", async (t) => {
  const { client } = await serve(t, (request, response) => request.url.endsWith("/exec") || json(response, 200, made));
  const box = await atoll.Sandbox.create({ client });
  await assert.rejects(box.run("x", { signal: AbortSignal.timeout(50) }), { name: "AbortError" });
});

test("the gateway's token does not reach a port", async (t) => {
  const { client } = await serve(t, (request, response) => {
    if (request.url !== "/page") return json(response, 200, made);
    json(response, 200, [request.headers["host"].replace(/\d+$/, "N"), request.headers["atoll-port-token"], request.headers["authorization"] ?? null]);
  });
  const box = await atoll.Sandbox.create({ client });
  const port = box.port(8000);
  assert.match(port.url, /^http:\/\/8000-aaaa\.localhost:\d+$/);
  assert.deepEqual(await (await port.fetch("/page")).json(), ["8000-aaaa.localhost:N", "p", null]);
});

// program has the program atoll be a script until the test has ended, and returns its directory.
async function program(t, script) {
  const dir = await mkdtemp(join(tmpdir(), "atoll-"));
  const before = { ...process.env };
  t.after(() => rm(dir, { recursive: true }));
  t.after(() => (process.env = before));
  process.env = { ...before, ATOLL_URL: "", ATOLL_STATE_DIR: dir, ATOLL_PROGRAM: join(dir, "atoll") };
  await writeFile(join(dir, "atoll"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return dir;
}

// listen serves sandboxes at a socket, as a gateway that a program starts would.
async function listen(t, path) {
  const server = createServer((_, response) => json(response, 200, { ...made, id: path.split("/").at(-1) })).listen(path);
  await once(server, "listening");
  t.after(() => server.close());
  return server;
}

test("a private gateway is started, and another one when it has left", async (t) => {
  const dir = await program(t, 'cd "$ATOLL_STATE_DIR"; echo x >>started; echo "$PWD/$1-$(wc -l <started)"');
  const first = await listen(t, join(dir, "gateway-1"));
  const client = new atoll.Client();
  t.after(() => client.close());
  assert.equal((await atoll.Sandbox.create({ client })).id, "gateway-1");
  first.close();
  first.closeAllConnections();
  await listen(t, join(dir, "gateway-2"));
  const ids = await Promise.all(Array.from({ length: 20 }, async () => (await atoll.Sandbox.create({ client })).id));
  assert.deepEqual(new Set(ids), new Set(["gateway-2"]));
});

test("the gateway of the state directory is used if it answers", async (t) => {
  const dir = await program(t, "exit 1");
  await listen(t, join(dir, "gateway.sock"));
  const client = new atoll.Client();
  t.after(() => client.close());
  assert.equal((await atoll.Sandbox.create({ client })).id, "gateway.sock");
});

test("a gateway that cannot be started says why", async (t) => {
  await program(t, "echo no room >&2; exit 1");
  await assert.rejects(atoll.Sandbox.create({ client: new atoll.Client() }), { name: "UnreachableError", message: /no room.*atoll doctor/ });
  process.env = { ...process.env, ATOLL_PROGRAM: "/nowhere/atoll" };
  await assert.rejects(atoll.Sandbox.create({ client: new atoll.Client() }), { name: "UnreachableError", hint: /install atoll/ });
});
