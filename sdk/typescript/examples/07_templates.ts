// The files of a sandbox are kept, and others begin with them.
import { Sandbox } from "atoll";

await using box = await Sandbox.create();
await box.run("echo prepared >state", { check: true });
await box.stop();
await box.snapshot("prepared-ts");
{
  await using other = await box.fork();
  await other.run("echo changed >state", { check: true });
}
await box.resume();
console.log((await box.files.readText("state")).trim());
{
  await using again = await Sandbox.create({ template: "prepared-ts" });
  console.log((await again.files.readText("state")).trim());
}
console.log((await Sandbox.templates()).map((template) => template.name));
await Sandbox.removeTemplate("prepared-ts");

// Output:
// prepared
// prepared
// [ 'prepared-ts' ]
