// A command in the background is followed, found again, and ended.
import { Sandbox } from "atoll";

await using box = await Sandbox.create();
const server = await box.start("echo ready; exec sleep 1000");
for await (const { stream, data } of server.output()) {
  console.log(stream, new TextDecoder().decode(data).trim());
  break;
}
const again = await box.process(server.id);
console.log("running:", await again.running());
await again.kill();
console.log("left:", (await box.processes()).length);

// Output:
// stdout ready
// running: true
// left: 0
