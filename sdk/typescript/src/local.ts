import { spawn } from "node:child_process";
import { connect } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { UnreachableError } from "./errors.js";

const probeTime = 2000; // milliseconds until a socket must answer

/** findLocal returns the socket of this user's gateway on this machine, which is started if none runs. */
export async function findLocal(): Promise<string> {
  const path = join(process.env["ATOLL_STATE_DIR"] || join(homedir(), ".atoll"), "gateway.sock");
  return (await answers(path)) ? path : startPrivate();
}

/** answers tells whether somebody listens at a socket. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    const end = (found: boolean) => {
      probe.destroy();
      resolve(found);
    };
    probe.setTimeout(probeTime, () => end(false));
    probe.once("connect", () => end(true)).once("error", () => end(false));
  });
}

/** startPrivate returns the socket of this user's gateway, which the program atoll starts if none runs. */
export function startPrivate(): Promise<string> {
  const program = process.env["ATOLL_PROGRAM"] || "atoll";
  return new Promise((resolve, reject) => {
    const child = spawn(program, ["gateway", "--background"], { stdio: ["ignore", "pipe", "pipe"] });
    const said = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said.stderr += text));
    child.once("error", (err) =>
      reject(new UnreachableError(`no gateway runs, and ${program} could not be started: ${err.message}`, "install atoll, or set ATOLL_PROGRAM, or ATOLL_URL and ATOLL_TOKEN", err)),
    );
    child.once("close", (code) => {
      if (code === 0) resolve(said.stdout.trim());
      else reject(new UnreachableError(`no gateway runs, and none could be started: ${said.stderr.trim()}`, "run `atoll doctor`"));
    });
  });
}
