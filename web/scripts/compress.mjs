// Compresses what vite built into the directory that the gateway embeds: one .gz a
// file, with the same bytes for the same input.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const from = fileURLToPath(new URL("../dist", import.meta.url));
const to = process.argv[2] ?? fileURLToPath(new URL("../../internal/gateway/dashboard/dist", import.meta.url));
rmSync(to, { recursive: true, force: true });
for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const path = join(entry.parentPath, entry.name);
  const target = join(to, `${relative(from, path)}.gz`);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, gzipSync(readFileSync(path), { level: 9 }));
}
