// A program that waits for input is written to, at a terminal too.
import { Sandbox } from "atoll";

await using box = await Sandbox.create();
const shell = await box.start("sh", { stdin: true });
await shell.write("name=Atoll\n");
await shell.write('echo "hello $name"\n', { end: true });
console.log((await shell.wait()).stdout.trim());
console.log((await box.run("tr a-z A-Z", { stdin: "at once\n" })).stdout.trim());

const screen = await box.start("stty -echo; echo ready; read answer; stty size; exit $answer", { terminal: { rows: 24, cols: 80 } });
await using terminal = await screen.terminal();
let seen = "";
for await (const bytes of terminal.output()) {
  seen += new TextDecoder().decode(bytes);
  if (seen === "ready\r\n") {
    await terminal.resize({ rows: 40, cols: 120 });
    await terminal.write("7\n");
  }
}
console.log(seen.trim().split("\r\n"), terminal.result?.exitCode);

// Output:
// hello Atoll
// AT ONCE
// [ 'ready', '40 120' ] 7
