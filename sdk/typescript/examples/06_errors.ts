// What goes wrong says what it is, and what to do.
import { CommandError, InvalidRequestError, NotFoundError, Sandbox } from "atoll";

await using box = await Sandbox.create();
try {
  await box.run("ls nothing", { check: true });
} catch (err) {
  if (err instanceof CommandError) console.log("command:", err.result.exitCode);
}
console.log("timed out:", (await box.run("sleep 100", { timeoutSeconds: 0.5 })).timedOut);
try {
  await box.files.read("nothing");
} catch (err) {
  if (err instanceof NotFoundError) console.log(err.status, err.code);
}
try {
  await Sandbox.create({ timeoutSeconds: 1e9 });
} catch (err) {
  if (err instanceof InvalidRequestError) console.log(err.fields);
}

// Output:
// command: 2
// timed out: true
// 404 file_not_found
// { '/timeoutSeconds': 'must be from 1 to 2592000' }
