// Sandboxes are found by what was noted with them, measured, and live longer when asked to.
import { Sandbox } from "atoll";

await using box = await Sandbox.create({ metadata: { user: "ann" }, timeoutSeconds: 60 });
for await (const found of Sandbox.list({ metadata: { user: "ann" } })) console.log(found.id === box.id);
const same = await Sandbox.connect(box.id);
const before = (await box.info()).deadline ?? "";
console.log("later:", ((await same.extend(600)).deadline ?? "") > before);
const used = await same.metrics();
console.log("used:", used.memoryBytes > 0, used.processes > 0, (await box.info()).running);

// Output:
// true
// later: true
// used: true true true
