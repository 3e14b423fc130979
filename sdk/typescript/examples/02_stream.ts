// What a command writes, as it comes. A reader that is slow holds the command up.
import { Sandbox } from "atoll";

await using box = await Sandbox.create();
let lines = 0;
const result = await box.run("seq 1 100000; echo done >&2", {
  onStdout: async (text) => {
    lines += text.split("\n").length - 1;
  },
  onStderr: (text) => console.log("stderr:", text.trim()),
});
console.log(lines, "lines, exit code", result.exitCode);

// Output:
// stderr: done
// 100000 lines, exit code 0
