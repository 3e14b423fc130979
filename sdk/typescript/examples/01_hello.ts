// A sandbox in three lines.
import { Sandbox } from "atoll";

await using box = await Sandbox.create();
console.log((await box.run("python3 -c 'print(6*7)'")).stdout.trim());

// Output:
// 42
