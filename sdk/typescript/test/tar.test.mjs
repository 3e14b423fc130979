// Archives go in whole, and what comes out of a sandbox is not believed.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Bytes } from "../dist/bytes.js";
import { pack, unpack } from "../dist/tar.js";

async function scratch(t) {
  const dir = await mkdtemp(join(tmpdir(), "atoll-tar-"));
  t.after(() => rm(dir, { recursive: true }));
  return dir;
}

// archive returns the archive of a directory in pieces of a size.
async function* archive(dir, size) {
  const parts = [];
  for await (const part of pack(dir)) parts.push(part);
  const all = Buffer.concat(parts);
  for (let at = 0; at < all.length; at += size) yield all.subarray(at, at + size);
}

// entry returns one entry of an archive, as somebody hostile would write it.
function entry({ name, type = "0", content = "", size = Buffer.byteLength(content) }) {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000777\0", 100);
  header.write(size.toString(8).padStart(11, "0"), 124);
  header.write("        " + type, 148);
  header.write("ustar\x0000", 257);
  header.write(header.reduce((sum, byte) => sum + byte).toString(8).padStart(6, "0") + "\0 ", 148);
  return Buffer.concat([header, Buffer.from(content), Buffer.alloc((512 - (Buffer.byteLength(content) % 512)) % 512)]);
}

const bytesOf = (...parts) => new Bytes((async function* () { yield* parts; })());
const end = Buffer.alloc(1024);

test("a directory survives, whatever the pieces are", async (t) => {
  const dir = await scratch(t);
  const long = "ä".repeat(60);
  await mkdir(join(dir, "in", long, "x".repeat(90)), { recursive: true });
  await mkdir(join(dir, "in", "empty"));
  await writeFile(join(dir, "in", long, "x".repeat(90), "big"), Buffer.alloc(700_000, "b"));
  await writeFile(join(dir, "in", "run.sh"), "echo", { mode: 0o755 });
  await symlink("/etc/passwd", join(dir, "in", "link"));
  for (const size of [511, 4096, 1 << 20]) {
    const out = join(dir, `out${size}`);
    await unpack(new Bytes(archive(join(dir, "in"), size)), out);
    assert.deepEqual((await readdir(out)).sort(), ["empty", "run.sh", long].sort());
    assert.equal((await readFile(join(out, long, "x".repeat(90), "big"))).length, 700_000);
    assert.equal((await stat(join(out, "run.sh"))).mode & 0o700, 0o700);
  }
});

const attacks = {
  "a path upwards": [entry({ name: "../evil", content: "x" })],
  "an absolute path": [entry({ name: "/tmp/evil", content: "x" })],
  "a path upwards in an extended header": [entry({ name: "x", type: "x", content: "19 path=a/../../evil\n".replace("19", "21") }), entry({ name: "fine", content: "x" })],
  "a wrong checksum": [entry({ name: "fine" }).fill("z", 0, 3)],
  "a number that is none": [entry({ name: "x", type: "x", content: "12 size=-1\n".replace("12", "11") }), entry({ name: "fine" })],
  "an endless extended header": [entry({ name: "x", type: "x", size: 8 ** 10 })],
  "a file that ends early": [entry({ name: "fine", content: "x", size: 4096 })],
  "a link on the way": [entry({ name: "link/evil", content: "x" })],
  "a link as the file": [entry({ name: "link", content: "x" })],
};

for (const [name, parts] of Object.entries(attacks)) {
  test(`${name} is refused`, async (t) => {
    const dir = await scratch(t);
    await mkdir(join(dir, "out"));
    await symlink(dir, join(dir, "out", "link"));
    await assert.rejects(unpack(bytesOf(...parts, ...(name.includes("early") ? [] : [end])), join(dir, "out")));
    assert.deepEqual(await readdir(dir), ["out"]);
  });
}

test("links and devices of an archive are left out", async (t) => {
  const dir = await scratch(t);
  await unpack(bytesOf(entry({ name: "l", type: "2" }), entry({ name: "d", type: "3" }), entry({ name: "f", content: "x" }), end), dir);
  assert.deepEqual(await readdir(dir), ["f"]);
});
