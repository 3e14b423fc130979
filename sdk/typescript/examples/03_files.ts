// Files are written, listed, moved, read and watched.
import { Sandbox } from "atoll";

await using box = await Sandbox.create();
await box.files.write("data/numbers.txt", "1\n2\n3\n");
console.log((await box.files.list("data")).map((entry) => entry.name));
console.log((await box.run("paste -sd+ data/numbers.txt")).stdout.trim());
await box.files.move("data/numbers.txt", "moved.txt");
console.log((await box.files.readText("moved.txt")).split("\n").length, await box.files.exists("data/numbers.txt"));

await using watch = await box.files.watch("data");
await box.files.write("data/new.txt", "news");
for await (const change of watch) {
  console.log(change.what, change.path.endsWith("/data/new.txt"));
  break;
}

// Output:
// [ 'numbers.txt' ]
// 1+2+3
// 4 false
// created true
