// A server inside is reached through the gateway, several at once.
import { Sandbox } from "atoll";

async function greet(name: string): Promise<string> {
  await using box = await Sandbox.create();
  await box.files.write("index.html", `hello ${name}`);
  const server = await box.start("exec python3 -u -m http.server 8000 2>&1");
  for await (const _ of server.output()) break; // it says that it serves
  const answer = await box.port(8000).fetch("/index.html");
  return `${answer.status} ${await answer.text()}`;
}
console.log(await Promise.all(["Ann", "Ben", "Cleo"].map(greet)));

// Output:
// [ '200 hello Ann', '200 hello Ben', '200 hello Cleo' ]
