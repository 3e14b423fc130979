import { constants } from "node:fs";
import { lstat, mkdir, open, readdir } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Bytes } from "./bytes.js";
import { AtollError } from "./errors.js";

const block = 512;
const chunk = 256 << 10;
const maxExtended = 1 << 20; // bytes of an extended header
const noFollow = constants.O_NOFOLLOW ?? 0;

/** pack yields a directory with what is below it as a tar archive. Links, pipes and devices are left out. */
export async function* pack(dir: string): AsyncGenerator<Uint8Array> {
  yield* packBelow(dir, "");
  yield Buffer.alloc(2 * block);
}

async function* packBelow(dir: string, prefix: string): AsyncGenerator<Uint8Array> {
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) {
      const { mode, mtimeMs } = await lstat(path);
      yield* header({ name: `${prefix}${entry.name}/`, type: "5", mode, mtimeMs, size: 0 });
      yield* packBelow(path, `${prefix}${entry.name}/`);
    } else if (entry.isFile()) {
      yield* packFile(path, prefix + entry.name);
    }
  }
}

async function* packFile(path: string, name: string): AsyncGenerator<Uint8Array> {
  await using file = await open(path, constants.O_RDONLY | noFollow);
  const { mode, mtimeMs, size } = await file.stat();
  yield* header({ name, type: "0", mode, mtimeMs, size });
  for (let left = size; left > 0; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(left, chunk)));
    if (bytesRead === 0) throw new Error(`${path} became shorter while it was read`);
    left -= bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
  yield padding(size);
}

interface Entry {
  name: string;
  type: string;
  mode: number;
  mtimeMs: number;
  size: number;
}

/** header yields the header of an entry, after an extended one where its name or its size needs that. */
function* header(entry: Entry): Generator<Uint8Array> {
  if (Buffer.byteLength(entry.name) > 100 || entry.size >= 8 ** 11) {
    const extended = Buffer.from(record("path", entry.name) + record("size", String(entry.size)));
    yield plainHeader({ ...entry, name: "extended", type: "x", size: extended.length });
    yield extended;
    yield padding(extended.length);
  }
  yield plainHeader(entry);
}

function plainHeader({ name, type, mode, mtimeMs, size }: Entry): Buffer {
  const out = Buffer.alloc(block);
  const octal = (value: number, width: number) => value.toString(8).padStart(width - 1, "0").slice(1 - width) + "\0";
  out.set(Buffer.from(name).subarray(0, 100));
  out.write(octal(mode & 0o777, 8) + octal(0, 8) + octal(0, 8), 100);
  out.write(octal(size, 12) + octal(Math.max(0, Math.floor(mtimeMs / 1000)), 12), 124);
  out.write("        " + type, 148);
  out.write("ustar\0" + "00", 257);
  out.write(octal(sum(out), 7) + " ", 148);
  return out;
}

/** record returns a record of an extended header, whose length counts itself. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const size = Buffer.byteLength(rest);
  const length = size + String(size + String(size).length).length;
  return length + rest;
}

function padding(size: number): Uint8Array {
  return Buffer.alloc((block - (size % block)) % block);
}

function sum(bytes: Uint8Array): number {
  return bytes.reduce((total, byte) => total + byte, 0);
}

/** unpack writes the files and directories of an archive below a directory. What a sandbox sends is not believed. */
export async function unpack(from: Bytes, dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (;;) {
    const entry = await nextEntry(from);
    if (!entry) return;
    const parts = safeParts(entry.name);
    if (entry.type === "5") await makeDirectories(dir, parts);
    if (entry.type !== "0") await skip(from, entry.size);
    else await unpackFile(from, await makeDirectories(dir, parts.slice(0, -1)), parts.at(-1) ?? "", entry);
    await skip(from, padding(entry.size).length);
  }
}

/** nextEntry reads a header with the extended ones before it; none at the end. */
async function nextEntry(from: Bytes): Promise<Entry | undefined> {
  let extended: Record<string, string> = {};
  for (;;) {
    const raw = await from.exactly(block);
    if (raw.every((byte) => byte === 0)) return undefined;
    const entry = parseHeader(raw);
    if (entry.type !== "x") return { ...entry, name: extended["path"] ?? entry.name, size: natural(extended["size"] ?? entry.size) };
    if (entry.size > maxExtended) throw broken("an extended header is too long");
    extended = parseRecords(await from.exactly(entry.size));
    await skip(from, padding(entry.size).length);
  }
}

function parseHeader(raw: Buffer): Entry {
  const text = (start: number, length: number) => raw.toString("utf8", start, start + length).replace(/\0[^]*$/, "");
  const octal = (start: number, length: number) => natural(parseInt(text(start, length).trim() || "0", 8));
  const expected = octal(148, 8);
  raw.fill(" ", 148, 156);
  if (sum(raw) !== expected) throw broken("a header has a wrong checksum");
  const prefix = text(257, 5) === "ustar" ? text(345, 155) : "";
  return { name: (prefix && prefix + "/") + text(0, 100), type: text(156, 1) || "0", mode: octal(100, 8), mtimeMs: 0, size: octal(124, 12) };
}

function parseRecords(raw: Buffer): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 0; at < raw.length; ) {
    const space = raw.indexOf(" ", at);
    const length = natural(raw.toString("latin1", at, space));
    if (space < at || length === 0 || at + length > raw.length) throw broken("an extended header is broken");
    const [key = "", ...value] = raw.toString("utf8", space + 1, at + length - 1).split("=");
    found[key] = value.join("=");
    at += length;
  }
  return found;
}

function natural(value: string | number): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw broken("a number is wrong");
  return number;
}

/** safeParts returns the elements of a name, which must not lead out. */
function safeParts(name: string): string[] {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  const strange = sep === "\\" ? /[\\:\0]/ : /\0/;
  if (name.startsWith("/") || parts.includes("..") || parts.some((part) => strange.test(part))) throw broken(`the path ${JSON.stringify(name)} leads outside`);
  return parts;
}

/** makeDirectories makes directories below dir and returns the last. A link on the way is refused. */
async function makeDirectories(dir: string, parts: string[]): Promise<string> {
  let path = dir;
  for (const part of parts) {
    path = join(path, part);
    await mkdir(path).catch((err: NodeJS.ErrnoException) => (err.code === "EEXIST" ? undefined : Promise.reject(err)));
    if (!(await lstat(path)).isDirectory()) throw broken(`${path} is no directory`);
  }
  return path;
}

async function unpackFile(from: Bytes, dir: string, name: string, entry: Entry): Promise<void> {
  if (name === "") throw broken("a file has no name");
  await using file = await open(join(dir, name), constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | noFollow, entry.mode & 0o755);
  for (let left = entry.size; left > 0; ) {
    const part = await from.some(Math.min(left, chunk));
    if (part.length === 0) throw broken("it ended too early");
    await file.write(part);
    left -= part.length;
  }
}

async function skip(from: Bytes, size: number): Promise<void> {
  for (let left = size; left > 0; ) {
    const part = await from.some(left);
    if (part.length === 0) throw broken("it ended too early");
    left -= part.length;
  }
}

function broken(why: string): AtollError {
  return new AtollError({ code: "bad_archive", detail: `the archive is refused: ${why}` });
}
