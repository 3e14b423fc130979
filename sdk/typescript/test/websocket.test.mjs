// Frames of WebSockets, good and bad.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { connect } from "node:net";
import { test } from "node:test";
import { WebSocketConnection } from "../dist/websocket.js";

// pair returns a connection and the socket at its other end.
async function pair(t) {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect(server.address().port, "127.0.0.1");
  const [other] = await once(server, "connection");
  t.after(() => [client, other].forEach((socket) => socket.destroy()) ?? server.close());
  other.on("error", () => {});
  return { other, connection: new WebSocketConnection(client) };
}

const frame = (first, data, size = [data.length]) => Buffer.concat([Buffer.from([first, ...size]), Buffer.from(data)]);

test("messages come in fragments, with pings between", async (t) => {
  const { other, connection } = await pair(t);
  other.write(Buffer.concat([frame(0x02, "ab"), frame(0x89, "p"), frame(0x80, "cd"), frame(0x81, "text"), frame(0x82, Buffer.alloc(300, "x"), [126, 1, 44]), frame(0x88, "")]));
  assert.deepEqual(await connection.receive(), { text: false, data: Buffer.from("abcd") });
  assert.deepEqual(await connection.receive(), { text: true, data: Buffer.from("text") });
  assert.equal((await connection.receive()).data.length, 300);
  assert.equal(await connection.receive(), undefined);
  const [pong] = await once(other, "data");
  assert.deepEqual([pong[0], pong[1], pong[6] ^ pong[2]], [0x8a, 0x81, "p".charCodeAt(0)]);
});

test("what is sent is masked", async (t) => {
  const { other, connection } = await pair(t);
  await connection.send(Buffer.alloc(200, 1));
  const [sent] = await once(other, "data");
  assert.deepEqual([...sent.subarray(0, 4)], [0x82, 0xfe, 0, 200]);
  assert.ok(sent.subarray(8).every((byte, i) => (byte ^ sent[4 + (i & 3)]) === 1));
  assert.throws(() => connection.send(Buffer.alloc(1 << 16)), RangeError);
});

const bad = {
  "a masked frame": frame(0x82, "", [0x80]),
  "an extension": frame(0xc2, "x"),
  "a message within another": Buffer.concat([frame(0x02, "a"), frame(0x82, "b")]),
  "a continuation of nothing": frame(0x80, "a"),
  "a message that is too long": frame(0x82, "", [127, 0, 0, 0, 1, 0, 0, 0, 0]),
  "an end in the middle": frame(0x82, "a", [9]),
};

for (const [name, bytes] of Object.entries(bad)) {
  test(`${name} is refused`, async (t) => {
    const { other, connection } = await pair(t);
    other.end(bytes);
    await assert.rejects(connection.receive(), { name: "AtollError" });
  });
}
