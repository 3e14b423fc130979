import type { CreateSandbox, ExecResult, Process as ProcessInfo, Processes, Sandbox as SandboxInfo, SandboxMetrics, Sandboxes, Template, Templates, TerminalSize } from "./api.js";
import { type Client, pathOf, sharedClient } from "./client.js";
import { AtollError, CommandError, NotFoundError } from "./errors.js";
import { Files } from "./files.js";
import { Port } from "./port.js";
import { base64, Process, type Result, resultOf } from "./process.js";

/** What a new sandbox is like. What is left out is as the gateway has it configured. */
export interface CreateOptions {
  /** Name of an image that the gateway has, or host for the programs of its machine. */
  image?: string;
  /** Whose files it begins with. */
  template?: string;
  /** URL of a repository that is cloned inside, and its branch or tag. */
  git?: string;
  ref?: string;
  /** A directory of this machine whose files are sent. */
  copy?: string;
  /** The names that it reaches, such as pypi.org or preset:npm. */
  egress?: readonly string[];
  /** Environment of every command. */
  env?: Record<string, string>;
  /** Texts to find it by. */
  metadata?: Record<string, string>;
  /** From now to its deadline; 300 if left out. */
  timeoutSeconds?: number;
  /** What becomes of it at its deadline; remove if left out. */
  onDeadline?: "remove" | "stop";
  /** Bytes. */
  memory?: number;
  cpus?: number;
  processes?: number;
  /** Billing account. */
  account?: string;
  /** Another gateway than the one that is found. */
  client?: Client;
}

/** How a command is started. */
export interface CommandOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** After which it is ended; none if left out. */
  timeoutSeconds?: number;
}

/** How a command in the background is started. */
export interface StartOptions extends CommandOptions {
  /** Keep its standard input open. */
  stdin?: boolean;
  /** Give it a terminal of this size. */
  terminal?: TerminalSize;
}

/** Takes what a command writes. The command waits while a promise that it returns is open. */
export type Writer = (text: string) => void | Promise<void>;

/** How a command is run. */
export interface RunOptions extends CommandOptions {
  stdin?: string | Uint8Array;
  /** Make a command that fails a CommandError. */
  check?: boolean;
  /** Called with what it writes, as it comes; the result has none of that then. */
  onStdout?: Writer;
  onStderr?: Writer;
  /** Ends the command. */
  signal?: AbortSignal;
}

/** A line for the shell, or a program and its arguments. */
export type Command = string | readonly string[];

/** A sandbox. It is removed by remove, at the end of `await using`, or at its deadline. */
export class Sandbox implements AsyncDisposable {
  readonly #client: Client;
  #info: SandboxInfo;
  /** Its files. */
  readonly files: Files;

  private constructor(client: Client, raw: SandboxInfo) {
    this.#client = client;
    this.#info = raw;
    this.files = new Files(client, this.id);
  }

  /** Make a sandbox. */
  static async create(options: CreateOptions = {}): Promise<Sandbox> {
    const client = options.client ?? sharedClient();
    const box = new Sandbox(client, await client.call("POST", pathOf(), { body: requestOf(options) }));
    if (options.copy !== undefined) await box.#fill(options.copy);
    return box;
  }

  async #fill(dir: string): Promise<void> {
    try {
      await this.files.upload(dir);
    } catch (err) {
      await this.remove();
      throw err;
    }
  }

  /** Return a sandbox that was made before. */
  static async connect(id: string, options: { client?: Client } = {}): Promise<Sandbox> {
    const client = options.client ?? sharedClient();
    return new Sandbox(client, await client.call("GET", pathOf(id)));
  }

  /** Yield the sandboxes that programs made, the oldest first. */
  static async *list(options: { metadata?: Record<string, string>; state?: string; client?: Client } = {}): AsyncGenerator<SandboxInfo> {
    const client = options.client ?? sharedClient();
    const metadata = Object.entries(options.metadata ?? {}).map(([name, value]) => `${name}=${value}`);
    for (let cursor: string | undefined; ; ) {
      const page: Sandboxes = await client.call("GET", pathOf(), { query: { made: true, order: "created", limit: 100, metadata, state: options.state, cursor } });
      yield* page.sandboxes;
      cursor = page.next;
      if (!cursor) return;
    }
  }

  /** Return the templates that sandboxes can begin with. */
  static async templates(options: { client?: Client } = {}): Promise<Template[]> {
    return (await (options.client ?? sharedClient()).call<Templates>("GET", "/api/v1/templates")).templates;
  }

  /** Remove a template. */
  static async removeTemplate(name: string, options: { client?: Client } = {}): Promise<void> {
    await (options.client ?? sharedClient()).call("DELETE", `/api/v1/templates/${encodeURIComponent(name)}`);
  }

  /** What its paths are called by. */
  get id(): string {
    return this.#info.id ?? "";
  }

  /** Its name on the command line of atoll. */
  get name(): string {
    return this.#info.containerName;
  }

  /** Return how it is now. */
  async info(): Promise<SandboxInfo> {
    this.#info = await this.#client.call("GET", pathOf(this.id));
    return this.#info;
  }

  /** Run a command and wait for its end. */
  async run(command: Command, options: RunOptions = {}): Promise<Result> {
    const body = commandOf(command, options);
    if (options.stdin !== undefined) body["stdin"] = base64(options.stdin);
    const followed = options.onStdout || options.onStderr;
    const raw = followed ? await this.#follow(body, options) : await this.#client.call<ExecResult>("POST", pathOf(this.id, "exec"), { body, signal: options.signal });
    const result = resultOf(raw);
    if (options.check && !result.ok) throw new CommandError(result);
    return result;
  }

  async #follow(body: Record<string, unknown>, options: RunOptions): Promise<ExecResult> {
    const said = { stdout: "", stderr: "" };
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const tell = { stdout: options.onStdout, stderr: options.onStderr };
    for await (const { name, data } of this.#client.events("POST", pathOf(this.id, "exec"), { body, signal: options.signal })) {
      if (name === "ended") return { ...(data as ExecResult), ...said };
      if (name !== "stdout" && name !== "stderr") continue;
      const text = decoders[name].decode(Buffer.from(data.data, "base64"), { stream: true });
      const writer = tell[name];
      if (writer) await writer(text);
      else said[name] += text;
    }
    throw new AtollError({ code: "stream_ended", detail: "the stream of the command ended before the command" });
  }

  /** Start a command in the background, with stdin one that can be written to, or with a terminal: p.terminal() shows that. */
  async start(command: Command, options: StartOptions = {}): Promise<Process> {
    const body = { ...commandOf(command, options), stdin: options.stdin ?? false, terminal: options.terminal };
    return new Process(this.#client, this.id, await this.#client.call("POST", pathOf(this.id, "processes"), { body }));
  }

  /** Return the commands in the background. */
  async processes(): Promise<Process[]> {
    const { processes } = await this.#client.call<Processes>("GET", pathOf(this.id, "processes"));
    return processes.map((raw) => new Process(this.#client, this.id, raw));
  }

  /** Return a command in the background that was started before. */
  async process(id: string): Promise<Process> {
    return new Process(this.#client, this.id, await this.#client.call<ProcessInfo>("GET", pathOf(this.id, "processes", id)));
  }

  /** Return where a server at a port of the sandbox is reached. */
  port(number: number): Port {
    return new Port(this.#client, number, this.id, this.#info.portToken ?? "");
  }

  /** Return what it uses. */
  async metrics(): Promise<SandboxMetrics> {
    return this.#client.call("GET", pathOf(this.id, "metrics"));
  }

  /** Move its deadline to so many seconds from now. */
  async extend(seconds: number): Promise<SandboxInfo> {
    this.#info = await this.#client.call("POST", pathOf(this.id, "extend"), { body: { timeoutSeconds: seconds } });
    return this.#info;
  }

  /** Stop it with all its commands. Its files stay. */
  async stop(): Promise<void> {
    await this.#client.call("POST", pathOf(this.id, "stop"));
  }

  /** Start it again after stop. */
  async resume(): Promise<void> {
    await this.#client.call("POST", pathOf(this.id, "start"));
  }

  /** Make a sandbox with the files of this one, as they are now. */
  async fork(options: { timeoutSeconds?: number; metadata?: Record<string, string> } = {}): Promise<Sandbox> {
    return new Sandbox(this.#client, await this.#client.call("POST", pathOf(this.id, "fork"), { body: options }));
  }

  /** Keep its files as a template. */
  async snapshot(name: string): Promise<Template> {
    return this.#client.call("POST", pathOf(this.id, "snapshots"), { body: { name } });
  }

  /** End it, whatever is done in it, and remove it with its files. One that is gone is no error. */
  async remove(): Promise<void> {
    try {
      await this.#client.call("DELETE", pathOf(this.id));
    } catch (err) {
      if (!(err instanceof NotFoundError)) throw err;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.remove();
  }
}

function requestOf(o: CreateOptions): CreateSandbox {
  const { image, template, env, metadata, timeoutSeconds, onDeadline, account } = o;
  const limits = { memoryBytes: o.memory, cpus: o.cpus, processes: o.processes };
  const request = {
    image, template, env, metadata, timeoutSeconds, onDeadline, account,
    workspace: o.git || o.ref ? { git: o.git, ref: o.ref } : undefined,
    egress: o.egress && { allow: [...o.egress] },
    limits: Object.values(limits).some((limit) => limit !== undefined) ? limits : undefined,
  };
  return JSON.parse(JSON.stringify(request)) as CreateSandbox; // without the members that are undefined
}

function commandOf(command: Command, o: CommandOptions): Record<string, unknown> {
  const what = typeof command === "string" ? { command } : { argv: command };
  return { ...what, env: o.env, dir: o.cwd, timeoutSeconds: o.timeoutSeconds };
}
