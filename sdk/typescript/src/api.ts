// Made from api/openapi.json by scripts/types.mjs: do not edit.

export interface Check {
  found: string;
  name: string;
  promised: string;
  ring: string;
  status: string;
}

export interface CreateSandbox {
  /** Billing account; a bound token's own. */
  account?: string;
  /** Which names outside it reaches; as the operator has configured it if left out. */
  egress?: SandboxEgress | null;
  /** Environment of every command. */
  env?: Record<string, string>;
  /** What its root is made of: the name of an image that the gateway has, or host for the programs of its machine. */
  image?: string;
  /** A token that is bound to an account may not go above those of the gateway's configuration. */
  limits?: SandboxLimits | null;
  /** At most 64 texts of the caller's own, to find it by. */
  metadata?: Record<string, string>;
  /** What becomes of it at its deadline; remove if left out. */
  onDeadline?: "remove" | "stop";
  /** Name of a snapshot whose files it begins with; env, limits and image are those of the template unless named here. */
  template?: string;
  /** From now to its deadline; 300 if left out. */
  timeoutSeconds?: number;
  /** Where the workspace is inside, HOME of its commands: an absolute path; that of the gateway's configuration if left out. */
  workdir?: string;
  /** What the workspace begins with; nothing if left out. */
  workspace?: SandboxWorkspace | null;
}

export interface CreateSnapshot {
  /** Of the template: up to 64 of a-z, 0-9, dot, dash and underscore. A name that is taken is refused. */
  name: string;
}

export interface Drift {
  deleted?: Array<string>;
  modified?: Array<string>;
  /** The source changed since. */
  stale?: Array<string>;
}

export interface DriftDiff {
  /** It was removed inside. */
  deleted?: boolean;
  /** Unified, from the source as it is now to the copy. */
  diff?: string;
  /** It was written inside. */
  modified?: boolean;
  /** Why there is no diff. */
  note?: string;
  path: string;
  /** The source changed since. */
  stale?: boolean;
}

export interface DriftDiffs {
  files: Array<DriftDiff>;
}

export interface ExecOutput {
  /** In base64, as it was written. */
  data: string;
  /** Bytes before it that are not there any more: a process in the background keeps the beginning and the end of what nobody follows. */
  lost?: number;
}

export interface ExecRequest {
  /** The program and its arguments. */
  argv?: Array<string>;
  /** A command line for /bin/sh -lc. */
  command?: string;
  /** Working directory; relative ones begin at the sandbox's own. */
  dir?: string;
  /** More variables of its environment. */
  env?: Record<string, string>;
  /** Of each output, where the answer is no stream: of a longer one the beginning and the end are kept; 1 MiB if left out. */
  outputBytes?: number;
  /** Its standard input, at most 3 MiB in base64. */
  stdin?: string;
  /** After which it is ended, with exit code 124 in the style of timeout(1); none if left out. */
  timeoutSeconds?: number;
}

export interface ExecResult {
  durationMs: number;
  /** Why it did not start. */
  error?: string;
  /** 128 and the number of the signal if one ended it, 127 if the program was not found, 126 if it could not be run. */
  exitCode: number;
  /** It was killed because memory ran out. */
  oom?: boolean;
  /** It was ended because the workspace is full. */
  quotaFull?: string;
  signal?: string;
  stderr: string;
  stderrLost?: number;
  /** Empty on a stream, whose events have it. Bytes that are no UTF-8 are replaced. */
  stdout: string;
  /** Bytes that were left out in the middle. */
  stdoutLost?: number;
  timedOut?: boolean;
  usage?: ExecUsage | null;
}

export interface ExecStart {
  at: string;
}

export interface ExecUsage {
  /** The most memory of one of its processes. */
  memoryBytes: number;
  /** CPU time in the kernel. */
  systemMs: number;
  /** CPU time in programs. */
  userMs: number;
}

export interface ExtendSandbox {
  /** From now to its deadline. */
  timeoutSeconds: number;
}

export interface FieldError {
  detail: string;
  /** JSON pointer of the member, or the name of the parameter. */
  pointer: string;
}

export interface FileChange {
  dir?: boolean;
  path: string;
  /** lost: changes were not seen, look at everything again. */
  what: "created" | "written" | "removed" | "attributes" | "lost";
}

export interface FileEntry {
  kind: "file" | "dir" | "symlink" | "fifo" | "socket" | "device";
  /** Permissions. */
  mode: number;
  modified: string;
  name: string;
  path: string;
  size: number;
}

export interface FileInfo {
  gid: number;
  kind: "file" | "dir" | "symlink" | "fifo" | "socket" | "device";
  /** Permissions. */
  mode: number;
  modified: string;
  path: string;
  size: number;
  /** Of a symbolic link, which is not followed. */
  target?: string;
  uid: number;
}

export interface FileTotals {
  bytes: number;
  dirs: number;
  files: number;
  /** Links, pipes and devices that were left out. */
  leftOut?: number;
  /** The first of them, and why. */
  leftOutNames?: Array<string>;
}

export interface Files {
  files: Array<FileEntry>;
  /** There are names after the last. */
  more: boolean;
}

export interface ForkSandbox {
  metadata?: Record<string, string>;
  /** From now to its deadline; 300 if left out. */
  timeoutSeconds?: number;
}

export interface MakeDirectory {
  /** Refuse one that exists, and a parent that does not. */
  exclusive?: boolean;
  path: string;
}

export interface MoveFile {
  /** Refuse a target that exists. */
  exclusive?: boolean;
  from: string;
  /** Missing directories are made. */
  to: string;
}

export interface Problem {
  /** The kind of problem, for programs. */
  code: string;
  /** What happened this time. */
  detail?: string;
  /** What is wrong with single fields. */
  errors?: Array<FieldError>;
  /** What to do about it. */
  hint?: string;
  /** Finds the request in the gateway's log. */
  requestId?: string;
  status: number;
  /** The kind of problem, for people; the same for every problem of one code. */
  title: string;
  /** What kind of problem it is, as a URI; about:blank if the code says it all. */
  type: string;
}

export interface Process {
  /** For people: shortened. */
  command: string;
  id: string;
  /** Inside the sandbox. */
  pid: number;
  /** Once it has ended. */
  result?: ExecResult | null;
  running: boolean;
  started: string;
  stderrBytes: number;
  /** Written so far. */
  stdoutBytes: number;
  terminal?: boolean;
}

export interface ProcessChanged {
  id: string;
}

export interface ProcessInput {
  /** At most 3 MiB in base64. */
  data?: string;
  /** Close its standard input after that. */
  end?: boolean;
}

export interface ProcessOutput {
  process: Process;
  stderr: string;
  stderrLost?: number;
  stderrNext: number;
  stdout: string;
  /** Bytes that were left out. */
  stdoutLost?: number;
  /** Offset to go on at. */
  stdoutNext: number;
}

export interface ProcessSignal {
  /** Such as SIGINT. */
  signal: string;
  /** To all its descendants too. */
  tree?: boolean;
}

export interface Processes {
  processes: Array<Process>;
}

export interface PruneRequest {
  /** Remove the private copies of what is removed too. */
  workspaces?: boolean;
}

export interface Pruned {
  removed: Array<Removal>;
  /** Engines that did not answer, so that nothing of theirs was looked at. */
  silent?: string;
}

export interface RecreateRequest {
  /** Wipe the private copy of the workspace too. */
  discard?: boolean;
}

export interface Recreated {
  aside?: string;
  containerName: string;
  discarded?: boolean;
  /** Files that the agent had changed, now in aside. */
  moved?: Array<string>;
}

export interface Removal {
  containerName: string;
  error?: string;
  reason: string;
}

export interface Sandbox {
  account?: string;
  agentId: string;
  backend: string;
  cdpPort?: number;
  configHash?: string;
  containerName: string;
  createdAtMs: number;
  deadline?: string;
  drift?: Drift | null;
  /** What its paths are called by; only of a sandbox that a program made, as are the members that follow. */
  id?: string;
  image: string;
  /** It was made from the image that is configured now. */
  imageMatch: boolean;
  imported?: boolean;
  /** A command or an agent works in it. */
  inUse?: boolean;
  kind: "sandbox" | "browser";
  /** When the workspace of a sandbox on another machine was last brought home; absent if never, or if it is on the gateway's own. */
  lastSavedAtMs?: number;
  lastUsedAtMs: number;
  metadata?: Record<string, string>;
  noVncPort?: number;
  onDeadline?: "remove" | "stop";
  phase: string;
  /** For requests to its ports, in the header Atoll-Port-Token, at the host name PORT-ID before a name of the gateway, such as 8000-ID.localhost. Only for tokens that may run commands. */
  portToken?: string;
  problem?: string;
  running: boolean;
  /** Its scope key: which sessions share it. */
  sessionKey: string;
  /** Empty if it is gone, or its engine does not answer. */
  state: string;
  /** That it began with. */
  template?: string;
  /** Directory of commands that name none, and where relative paths begin. */
  workdir?: string;
  /** On the host; only for callers that are bound to no account. */
  workspaceDir?: string;
}

export interface SandboxEgress {
  /** Rules: NAME, NAME:PORT, *.NAME, preset:NAME, or an object of sandbox.egress.allow as text. None reaches nothing. A token that is bound to an account may only name what the operator's own rules allow. */
  allow: Array<string>;
}

export interface SandboxLimits {
  /** Processors, such as 0.5. */
  cpus?: number;
  /** Memory of all its processes. */
  memoryBytes?: number;
  /** Processes and threads at once. */
  processes?: number;
  /** Bytes in the workspace. */
  workspaceBytes?: number;
  /** Files in the workspace. */
  workspaceFiles?: number;
}

export interface SandboxMetrics {
  at: string;
  /** CPU time of its processes since it was started. */
  cpuMs: number;
  /** The limit of processors, if there is one, as are the other limits. */
  cpus?: number;
  /** Caches that can be dropped are left out. */
  memoryBytes: number;
  memoryLimitBytes?: number;
  /** Processes and threads. */
  processes: number;
  processesLimit?: number;
  /** In files of the workspace. */
  workspaceBytes: number;
  /** Files, directories and links in the workspace. */
  workspaceFiles: number;
  workspaceFilesLimit?: number;
  workspaceLimitBytes?: number;
  /** There is more in the workspace than was counted: of 100,000 files, or of directories that the gateway may not read. */
  workspaceMore?: boolean;
}

export interface SandboxWorkspace {
  /** Commits of history; 1 if left out. */
  depth?: number;
  /** URL of the repository: https:// without a name and a password. A token that is bound to an account reaches only servers that the operator allows. */
  git?: string;
  /** Branch or tag; the repository's own if left out. */
  ref?: string;
}

export interface Sandboxes {
  /** Cursor of the next page; none if this is the last. */
  next?: string;
  sandboxes: Array<Sandbox>;
  /** How many there are that the filters let through. */
  total: number;
}

export interface StartProcess {
  /** The program and its arguments. */
  argv?: Array<string>;
  /** A command line for /bin/sh -lc. */
  command?: string;
  /** Working directory; relative ones begin at the sandbox's own. */
  dir?: string;
  /** More variables of its environment. */
  env?: Record<string, string>;
  /** Keep its standard input open for later input; else it is empty. */
  stdin?: boolean;
  /** Give it a terminal of this size; both outputs are then stdout, and its input is open. */
  terminal?: TerminalSize | null;
  /** After which it is ended; none if left out. */
  timeoutSeconds?: number;
}

export interface Template {
  account?: string;
  created: string;
  image?: string;
  name: string;
}

export interface Templates {
  templates: Array<Template>;
}

export interface TerminalSize {
  cols: number;
  rows: number;
}

export interface Verification {
  backend: string;
  checks: Array<Check>;
  image: string;
  ok: boolean;
  sandbox: string;
}

export interface Verifications {
  verified: Array<Verification>;
}
