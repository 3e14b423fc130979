/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Sandboxes of Atoll for Node programs, without dependencies.
 *
 *     import { Sandbox } from "atoll";
 *     await using box = await Sandbox.create();
 *     console.log((await box.run("python3 -c 'print(6*7)'")).stdout);
 *
 * @module
 */
export type { FileChange, FileEntry, FileInfo, FileTotals, Sandbox as SandboxInfo, SandboxMetrics, Template, TerminalSize } from "./api.js";
export { Client, type ClientOptions } from "./client.js";
export { AtollError, CommandError, ConflictError, ForbiddenError, InvalidRequestError, LimitError, NotFoundError, UnreachableError } from "./errors.js";
export { Files, Watch } from "./files.js";
export { Port, type PortRequest } from "./port.js";
export { type Output, Process, type Result } from "./process.js";
export { type Command, type CommandOptions, type CreateOptions, type RunOptions, Sandbox, type StartOptions, type Writer } from "./sandbox.js";
export { Terminal } from "./terminal.js";
