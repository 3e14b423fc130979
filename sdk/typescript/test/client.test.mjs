// What a client does with a gateway that misbehaves.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
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
