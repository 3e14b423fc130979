// A directory of this machine goes in, and results come out.
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "atoll";

const here = await mkdtemp(join(tmpdir(), "atoll-"));
const deep = join("a".repeat(90), "b".repeat(90));
await mkdir(join(here, "project", deep), { recursive: true });
await writeFile(join(here, "project", deep, "words"), "one two three");
{
  await using box = await Sandbox.create({ copy: join(here, "project") });
  await box.run(`mkdir -p out/${deep} && wc -w <${deep}/words >out/${deep}/count`, { check: true });
  await box.files.download("out", join(here, "results"));
}
console.log((await readFile(join(here, "results", "out", deep, "count"), "utf8")).trim());
await rm(here, { recursive: true });

// Output:
// 3
