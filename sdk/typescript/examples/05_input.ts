// A program that waits for input is written to.
import { Sandbox } from "atoll";

await using box = await Sandbox.create();
const shell = await box.start("sh", { stdin: true });
await shell.write("name=Atoll\n");
await shell.write('echo "hello $name"\n', { end: true });
console.log((await shell.wait())?.stdout.trim());
console.log((await box.run("tr a-z A-Z", { stdin: "at once\n" })).stdout.trim());

// Output:
// hello Atoll
// AT ONCE
