// Made from api/openapi.json by scripts/types.mjs: do not edit.

export interface Aborted {
  ids: Array<string>;
}

export interface AccountCost {
  account: string;
  calls: number;
  microUSD: number;
  /** Calls whose bill is not known yet. */
  provisional: number;
  runs: number;
  tokens: number;
  /** Calls whose money nobody knows. */
  unpriced?: number;
}

export interface Agent {
  description: string;
  /** What a run names. */
  graphId: string;
  name: string;
  /** Why runs of it cannot be carried out now; missing if they can. */
  unavailable?: string;
}

export interface Agents {
  agents: Array<Agent>;
}

export interface AnsweredApproval {
  approval: Approval;
  /** What became of what it asked about. */
  note?: string;
}

export interface Approval {
  answer?: "once" | "session" | "rule" | "deny";
  answeredAt?: string;
  answeredBy?: string;
  created: string;
  /** The answer when it expires. */
  default: "once" | "deny";
  /** What the answer is for. Lists leave it out. */
  evidence?: string;
  expires: string;
  /** SHA-256 of the evidence, in hexadecimal. */
  hash: string;
  id: string;
  /** What asks, for example relay. */
  kind: string;
  owner: ApprovalOwner;
  /** What the answers session and rule cover; without one they are refused. */
  rule?: string;
  state: "open" | "answered" | "expired" | "replaced";
  /** What it asks about; a kind has one open question for each. */
  subject: string;
  summary: string;
}

export interface ApprovalAnswer {
  answer: "once" | "session" | "rule" | "deny";
  /** Of the evidence that the person saw; an answer to other evidence is refused. */
  hash: string;
}

export interface ApprovalOwner {
  account?: string;
  agent?: string;
  run?: string;
  session?: string;
}

export interface Approvals {
  approvals: Array<Approval>;
  /** Cursor of the next page; none if this is the last. */
  next?: string;
}

export interface Attachment {
  /** In base64. Its type is found out from it. */
  content: string;
  /** What the sender calls it; only letters, digits, dots, dashes and underscores of it are kept. */
  name?: string;
}

export interface Audit {
  /** Cursor of the page with older records; absent if this is the last. */
  next?: string;
  /** In the order of time. */
  records: Array<unknown>;
}

export interface AuditProblem {
  line?: number;
  segment: string;
  what: string;
}

export interface AuditVerification {
  /** Records that were counted only. */
  dropped: number;
  ok: boolean;
  /** At most 100. */
  problems: Array<AuditProblem>;
  records: number;
  /** Segments that retention removed. */
  retired: number;
  segments: number;
  /** Records after the last signature. */
  unsigned: number;
}

export interface Bill {
  calls: number;
  inputTokens: number;
  microUsd: number;
  outputTokens: number;
  provisional: boolean;
  /** Whose figure it is. */
  source: string;
  unpricedCalls?: number;
}

export interface Browser {
  account?: string;
  agentId: string;
  /** Programs may attach to it: sandbox.browser.cdp is operator. */
  cdp: boolean;
  /** Port of this machine by which programs are attached. */
  cdpPort?: number;
  /** People may take it over: sandbox.browser.control is not off. */
  control: boolean;
  /** Of its sandbox. */
  name: string;
  /** Port of this machine by which its window is watched. */
  noVncPort?: number;
  /** The browser itself runs. */
  open: boolean;
  /** A person has taken it over; the agent waits. */
  person?: boolean;
  /** That are attached through this gateway. */
  programs: number;
  /** Its sandbox runs. */
  running: boolean;
  /** Its scope key: which sessions share it. */
  sessionKey: string;
  /** People may watch it: sandbox.browser.view is not off. */
  view: boolean;
  /** That watch it through this gateway. */
  viewers: number;
  /** It has a window, which is watched by VNC. */
  window?: boolean;
}

export interface BrowserEndpoint {
  /** Until when the connection has to be opened. */
  expires: string;
  /** The page that shows it, with the same ticket; of views, where the gateway has pages. */
  page?: string;
  /** With a ticket in it, for one connection. */
  wsEndpoint: string;
}

export interface BrowserTab {
  id: string;
  title: string;
  url: string;
}

export interface BrowserTabs {
  tabs: Array<BrowserTab>;
}

export interface BrowserVersion {
  Browser: string;
  "Protocol-Version": string;
  "User-Agent"?: string;
  /** With a ticket in it, for one connection within a minute. */
  webSocketDebuggerUrl: string;
}

export interface Browsers {
  browsers: Array<Browser>;
}

export interface Budget {
  tokens?: number;
  usd?: number;
}

export interface Budgets {
  budgets: Array<SpendBudget>;
}

export interface Call {
  args: string;
  id: string;
  name: string;
}

export interface Check {
  found: string;
  name: string;
  promised: string;
  ring: string;
  status: string;
}

export interface Config {
  agent: string;
  /** Of the configuration file. */
  path: string;
  settings: Array<Setting>;
}

export interface CostOfRun {
  account: string;
  agent: string;
  calls: number;
  crashed?: number;
  first: string;
  last: string;
  microUSD: number;
  provisional: number;
  run: string;
  tokens: number;
  unpriced?: number;
}

export interface CostPoint {
  /** Begin of the bucket, in UTC. */
  at: string;
  calls: number;
  /** The account, agent or model. */
  key: string;
  microUSD: number;
  provisional: number;
  tokens: number;
  unpriced: number;
}

export interface CostSeries {
  /** At most 2000. */
  points: Array<CostPoint>;
}

export interface Costs {
  accounts: Array<AccountCost>;
  runs: Array<CostOfRun>;
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

export interface CreateToken {
  /** That it is bound to; without one it sees all. A bound caller's own. */
  account?: string;
  /** Until it ends; 90 if left out. */
  days?: number;
  /** For people. */
  name?: string;
  /** What it may do. */
  scope: "admin" | "operator" | "operator.approvals" | "run" | "read";
}

export interface CreatedToken {
  /** What callers send. It is shown this once: only a hash is kept. */
  text: string;
  token: Token;
}

export interface Delivery {
  branch: string;
  /** Why they were not sent. */
  error?: string;
  hint?: string;
  note: string;
  pullRequest?: string;
  state?: string;
}

export interface Device {
  client: string;
  created: string;
  id: string;
  lastUsed?: string;
  /** Otherwise it waits for an admin. */
  paired: boolean;
  platform: string;
  /** Id of the token that it was paired under. */
  token: string;
}

export interface Devices {
  devices: Array<Device>;
}

export interface Doctor {
  checks: Array<DoctorCheck>;
}

export interface DoctorCheck {
  detail: string;
  fix?: string;
  name: string;
  status: "ok" | "warning" | "failed";
}

export interface Done {
  ok: boolean;
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

export interface Event {
  at: string;
  bill?: Bill | null;
  call?: Call | null;
  error?: Failure | null;
  isError?: boolean;
  /** Of usage_report: what the program says that cost. The bill is in bill. */
  microUsd?: number;
  notes?: Record<string, string>;
  /** Where a session's task is carried out, of prepared. */
  place?: Location | null;
  seq: number;
  step?: string;
  /** Of a session's events over /api/v1/live: the task. */
  task?: string;
  text?: string;
  tookMs?: number;
  type: "text_delta" | "tool_call" | "tool_result" | "usage_report" | "step" | "waiting" | "log" | "error" | "done" | "started" | "prepared" | "notice";
  /** Of usage_report: tokens that the program says it used since the report before. */
  usage?: Usage | null;
}

export interface Events {
  events: Array<Event>;
  /** Nothing more will come. */
  over: boolean;
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

export interface Explanation {
  agentId: string;
  containerName: string;
  image: string;
  mode: string;
  network: string;
  path?: PathDecision | null;
  reason: string;
  /** What the policy refuses: nothing is made while there is any. */
  refused?: Array<string>;
  sandboxed: boolean;
  scope: string;
  scopeKey: string;
  sessionKey: string;
  tool?: ToolDecision | null;
  workspaceAccess: string;
}

export interface ExtendSandbox {
  /** From now to its deadline. */
  timeoutSeconds: number;
}

export interface Failure {
  code: string;
  message: string;
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

export interface Health {
  ok: boolean;
  version: string;
}

export interface History {
  messages: Array<HistoryMessage>;
}

export interface HistoryMessage {
  at?: string;
  callId?: string;
  calls?: Array<Call>;
  content?: string;
  isError?: boolean;
  role: "user" | "assistant" | "tool";
}

export interface Image {
  added: string;
  digest?: string;
  files: number;
  id: string;
  names: Array<string>;
  /** Its layers lie on the host's own programs. */
  onHost?: boolean;
  problem?: string;
  /** Bytes. */
  size: number;
  /** Where it came from. */
  source: string;
  /** Sandboxes. */
  usedBy: number;
}

export interface Images {
  images: Array<Image>;
}

export interface LiveCounts {
  running: number;
  sandboxes: number;
}

export interface LiveHealth {
  /** Why not, for callers of every account. */
  detail?: string;
  ready: boolean;
  version: string;
}

export interface LiveMessage {
  /** Of run:ID and session:KEY. */
  events?: Array<Event>;
  keys?: Array<string>;
  problem?: Problem | null;
  /** Keys of rows that are gone. */
  removed?: Array<string>;
  rows?: Array<unknown>;
  /** Grows with every message of the topic. Of run:ID the number of the last event. */
  seq?: number;
  topic?: string;
  type: "ready" | "snapshot" | "delta" | "problem";
}

export interface LiveRequest {
  /** Of login: the page's half of the log-in. */
  page?: string;
  /** Of subscribe: the last seq that the client has of the topic; a snapshot follows if what came after it is gone. */
  since?: number;
  topic?: string;
  type: "login" | "subscribe" | "unsubscribe";
}

export interface Location {
  backend?: string;
  image?: string;
  /** What the sandbox may use, in words. */
  limits?: string;
  /** Who is asked first. */
  model: string;
  network?: string;
  /** What to know before it begins. */
  notices?: Array<string>;
  /** Id of the receipt. */
  run: string;
  /** Absent if its tools work on the host. */
  sandbox?: string;
  workdir?: string;
  workspaceAccess?: string;
}

export interface LogIn {
  code?: string;
  token?: string;
}

export interface LogInCode {
  code: string;
  expires: string;
  /** Of the page, with the code in its fragment, which reaches no log. */
  url: string;
}

export interface LoggedIn {
  /** If it is not used again. */
  expires: string;
  me: Me;
  page: string;
}

export interface MakeDirectory {
  /** Refuse one that exists, and a parent that does not. */
  exclusive?: boolean;
  path: string;
}

export interface Me {
  /** That the token is bound to; without one it sees all. */
  account?: string;
  /** Of the token. */
  name: string;
  scope: "admin" | "operator" | "operator.approvals" | "run" | "read";
  /** Of the gateway. */
  version: string;
}

export interface Message {
  content: string;
  role: "user" | "assistant";
}

export interface Model {
  contextWindow?: number;
  /** provider/name. */
  id: string;
  name: string;
  provider: string;
  reasoning?: boolean;
}

export interface ModelCall {
  at: string;
  /** The figure is the provider's; else it is our own. */
  billed: boolean;
  cacheWriteTokens: number;
  cachedInputTokens: number;
  /** Its process died, and what was reserved is charged. */
  crashed?: boolean;
  dialect: string;
  id: string;
  /** Without those that were cached. */
  inputTokens: number;
  microUsd: number;
  model: string;
  modelAsked: string;
  outputTokens: number;
  priced: boolean;
  /** Of the output. */
  reasoningTokens: number;
  status: number;
}

export interface ModelCalls {
  calls: Array<ModelCall>;
}

export interface Models {
  models: Array<Model>;
}

export interface MoveFile {
  /** Refuse a target that exists. */
  exclusive?: boolean;
  from: string;
  /** Missing directories are made. */
  to: string;
}

export interface PathDecision {
  /** Why there is no such path. */
  error?: string;
  input: string;
  inside?: string;
  writable: boolean;
}

export interface Pool {
  agent: string;
  backend?: string;
  /** How many this gateway took out since it started. */
  claimed: number;
  /** The size that the configuration has. */
  configured: number;
  /** Attempts to fill it that failed, in a row. */
  failures?: number;
  /** How many are being made. */
  making: number;
  /** New sandboxes since then for which there was none. */
  missed: number;
  /** Why it is not full. */
  problem?: string;
  /** How many wait. */
  ready: number;
  /** How many sandboxes are to wait. */
  size: number;
}

export interface Pools {
  pools: Array<Pool>;
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

export interface Ready {
  ready: boolean;
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

export interface RelayFinding {
  commit?: string;
  detail?: string;
  path?: string;
  rule: string;
  verdict: string;
}

export interface RelayPatch {
  /** There is more: atoll relay show RUN --patch has what is kept. */
  cut?: boolean;
  patch: string;
  /** Why there is none. */
  why?: string;
}

export interface RelayPush {
  /** Say yes to what waits for a person. */
  approve?: boolean;
}

export interface RelayRecord {
  account?: string;
  agent?: string;
  approvedBy?: string;
  branch: string;
  changed: string;
  /** The agent's, parents first. */
  commits?: Array<string>;
  deniedBy?: string;
  /** That they change. */
  files: number;
  /** What the content policy found. */
  findings?: Array<RelayFinding>;
  /** The agent failed: a person decides whether it is pushed. */
  held?: boolean;
  /** The same in words. */
  note: string;
  pullRequest?: string;
  run: string;
  /** The step that it came to, such as judged, waiting, blocked, pushed or done. */
  state: string;
  /** Why the last attempt ended. */
  trouble?: string;
}

export interface RelayRecords {
  relays: Array<RelayRecord>;
  total: number;
}

export interface Removal {
  containerName: string;
  error?: string;
  reason: string;
}

export interface Report {
  backend?: string;
  /** What became of its commits. */
  delivery?: Delivery | null;
  /** What the sandbox is made of. */
  image?: string;
  /** Who was asked first. */
  model?: string;
  /** Id of the receipt. */
  run: string;
  sandbox?: string;
  tookMs: number;
  toolCalls: number;
  turns: number;
  unpricedCalls?: number;
}

export interface ResizePool {
  /** How many are to wait; all pools together at most 256. */
  size: number;
}

export interface Run {
  account?: string;
  /** Agent of the configuration. */
  agent?: string;
  bill: Bill;
  /** Key of the branch that its commits are for. */
  branch?: string;
  /** Of a run on a directory of the host: what waited at its gate when it ended. */
  changes?: RunChanges | null;
  created: string;
  /** What became of its commits. */
  delivery?: Delivery | null;
  ended?: string;
  /** Why there is none; null if the run succeeded or is not over. */
  error: Failure | null;
  graphId: string;
  id: string;
  /** What the sandbox is made of. */
  image?: string;
  /** The id as who asked for a task of a session knows it. It finds the run too. */
  knownAs?: string;
  model: string;
  /** What became of the work, such as the address of a pull request. */
  notes?: Record<string, string>;
  peakMemory?: number;
  /** Address of the pull request with its commits. */
  pullRequest?: string;
  sandbox?: string;
  /** Key of the session that it is a task of; its history has the steps. */
  session?: string;
  started?: string;
  step: "accepted" | "preparing" | "executing" | "answered" | "settled" | "finished" | "done";
  /** The beginning of what was asked, at most 4 KiB; of a summary 200 bytes. */
  task?: string;
  /** The answer. */
  text: string;
  /** What the agent said of itself. */
  told?: SelfReport;
  /** Id of its trace. */
  trace?: string;
  /** The page of its trace in the operator's tool, as gateway.links.trace says. */
  traceUrl?: string;
  /** What it waits for: turn, approval, or why its branch is not free. */
  waitingFor?: string;
  warnings?: Array<string>;
}

export interface RunChanges {
  approval: number;
  blocked: number;
  /** That the repository has not. */
  commits: number;
  conflict: number;
  /** Only for callers that are bound to no account. */
  directory: string;
  /** Files of the directory that were not visible inside. */
  hidden: number;
  pass: number;
  /** Files that are never taken over. */
  withheld: number;
}

export interface RunCost {
  bill: Bill;
  id: string;
}

export interface RunRequest {
  /** Billing account that pays. A token that is bound to one pays with that. */
  account?: string;
  /** Agent of the configuration whose settings and budgets apply; the default one if none is named. */
  agent?: string;
  /** thread: stateKey may name the branch. */
  branchMode?: "thread";
  /** Key of the branch that commits go to. */
  branchName?: string;
  /** What it may spend on models at most. */
  budget?: Budget;
  /** Which agent works, of the catalogue; sandbox:agent if none is named. */
  graphId?: string;
  /** Id of the run; asking twice is asking once. Only callers that are bound to no account choose one, others give an Idempotency-Key. */
  id?: string;
  /** Bytes of memory, at most the agent's own limit. */
  memory?: number;
  /** The task. Either this or messages. */
  message?: string;
  /** The conversation; the last message is the user's, and the task. */
  messages?: Array<Message>;
  /** provider/name; the agent's own if none is named. */
  model?: string;
  /** Conversation that names the branch, only with branchMode thread. */
  stateKey?: string;
  /** Seconds until it is ended, at most the agent's own limit. */
  timeoutSeconds?: number;
  /** Work item that names the branch, if branchName does not. */
  workItemId?: string;
}

export interface Runs {
  /** Cursor of the next page; absent if this is the last. */
  next?: string;
  runs: Array<Run>;
  /** How many there are on all pages. */
  total: number;
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

export interface SandboxUsage {
  /** CPUs, over the last second. */
  cpu: number;
  /** Bytes. */
  memory: number;
  processes: number;
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

export interface SelfReport {
  model?: string;
  provider?: string;
  session?: string;
  usage?: SelfReportedUsage;
}

export interface SelfReportedUsage {
  input: number;
  output: number;
  total: number;
}

export interface SendRequest {
  /** Billing account of a session that is new. A token that is bound to one pays with that. */
  account?: string;
  /** Files for the agent, at most 20 and 16 MiB in all. It finds them below /workspace/media/inbound. */
  attachments?: Array<Attachment>;
  /** Key of the branch that commits go to. */
  branchName?: string;
  /** What it may spend on models at most. */
  budget?: Budget;
  /** Work on the host if the session is not sandboxed. Only for admins that are bound to no account. */
  hostTools?: boolean;
  /** Most answers of the model. */
  maxTurns?: number;
  /** May be empty if there are attachments. */
  message: string;
  /** provider/name, for this message alone. */
  model?: string;
  /** Merged into those of the session, and kept there. */
  outboundHeaders?: Record<string, string>;
  /** Id of the receipt. Only for admins that are bound to no account. */
  runId?: string;
  /** Conversation to go on with, in place of the session's own. Only for admins that are bound to no account. */
  sessionId?: string;
  /** More instructions, for this message alone. */
  system?: string;
  /** How much the model thinks first: off, minimal, low, medium or high. */
  thinking?: string;
  timeoutSeconds?: number;
}

export interface Session {
  abortedLastRun?: boolean;
  account?: string;
  agent: string;
  created: string;
  key: string;
  label?: string;
  lastModel?: string;
  levels?: Record<string, string>;
  /** Override, provider/id. */
  model?: string;
  /** Names of the headers that go with its model calls; values are not shown. */
  outboundHeaders?: Array<string>;
  /** Of the transcript; a reset gives a new one. */
  sessionId: string;
  total?: Usage;
  updated: string;
}

export interface SessionPatch {
  label?: string | null;
  levels?: Record<string, string | null>;
  /** provider/id of the catalogue; in force for the next call. */
  model?: string | null;
  /** Go with this session's model calls and no other's. */
  outboundHeaders?: Record<string, string> | null;
}

export interface Sessions {
  next?: string;
  sessions: Array<Session>;
}

export interface Setting {
  key: string;
  line?: number;
  /** Where it is written in the file. */
  path?: string;
  /** agent, global, default, derived or project. */
  source: string;
  value: string;
}

export interface SpendBudget {
  account: string;
  /** Of a day: at this pace, at its end. */
  expectedMicroUsd?: number;
  /** The key of the configuration that has the limit. */
  from?: string;
  /** The limit. */
  microUsd: number;
  /** Of an account over all time, or in this day (UTC). */
  scope: "account" | "day";
  spentMicroUsd: number;
  spentTokens: number;
  /** The limit. */
  tokens: number;
  /** Calls whose money nobody knows. */
  unpricedCalls?: number;
}

export interface StartBrowser {
  /** Billing account; that of the token if it is bound to one. */
  account?: string;
  /** The default one if not given. */
  agent?: string;
  /** The agent's main session if not given. */
  session?: string;
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

export interface SyncApplied {
  /** On the host; only for callers that are bound to no account. */
  base?: string;
  files: Array<string>;
  /** Undoes it. */
  id: string;
}

export interface SyncApproval {
  choices: Array<SyncChoice>;
  /** Needed for more than 100 deletions, or a fifth of the files. */
  confirmDeletions?: boolean;
  subject?: SyncSubject;
}

export interface SyncBatch {
  by?: string;
  files: Array<string>;
  id: string;
  result: string;
  time: string;
  /** What it replaced is kept. */
  undoable: boolean;
  /** Id of the batch that it put back. */
  undoes?: string;
}

export interface SyncChoice {
  path: string;
  /** Of the content that was shown; other content is refused. Deletions have none. */
  sha256?: string;
}

export interface SyncCommit {
  author?: string;
  files: number;
  id: string;
  reasons?: Array<SyncReason>;
  subject: string;
  time?: string;
  verdict?: "approval" | "blocked";
}

export interface SyncCommits {
  /** The branch that the agent is on. */
  branch?: string;
  commits: Array<SyncCommit>;
  /** The agent's last commit. */
  head?: string;
  /** Further branches with commits that the host has not. */
  others?: Array<string>;
  /** Of all commits; they pass if there is none. */
  verdict?: "approval" | "blocked";
}

export interface SyncCounts {
  approval: number;
  blocked: number;
  conflict: number;
  pass: number;
  withheld: number;
}

export interface SyncDiff {
  diff: string;
  path: string;
  /** Of the content that the diff leads to. */
  sha256?: string;
}

export interface SyncDone {
  files?: Array<string>;
  note?: string;
}

export interface SyncEntry {
  /** Lines. */
  added?: number;
  /** Of a file that was renamed. */
  from?: string;
  isDir?: boolean;
  kind: "added" | "modified" | "deleted" | "mode" | "link" | "replaced" | "renamed" | "special";
  /** Text of a symbolic link. */
  link?: string;
  /** Inside, in octal. */
  mode?: string;
  /** Of the host's file, in octal. */
  oldMode?: string;
  /** The reason that a person gave for letting it pass. */
  overridden?: string;
  path: string;
  reasons?: Array<SyncReason>;
  /** Lines. */
  removed?: number;
  /** Of the content that is applied, or of a link's text. */
  sha256?: string;
  size?: number;
  verdict: "pass" | "approval" | "blocked" | "conflict";
}

export interface SyncGroup {
  files: number;
  name: string;
}

export interface SyncHistory {
  batches: Array<SyncBatch>;
}

export interface SyncOverride {
  path: string;
  /** Recorded in the audit log. */
  reason: string;
  /** Of the content that was shown. Deletions have none. */
  sha256?: string;
  subject?: SyncSubject;
}

export interface SyncReason {
  detail?: string;
  rule: string;
  verdict: string;
}

export interface SyncRejection {
  paths: Array<string>;
  subject?: SyncSubject;
}

export interface SyncRequest {
  subject?: SyncSubject;
}

export interface SyncRun {
  /** Made inside, that the repository has not, and further branches with such. */
  commits: number;
  counts: SyncCounts;
  run: string;
  underWay?: boolean;
}

export interface SyncRuns {
  runs: Array<SyncRun>;
}

export interface SyncSubject {
  /** Billing account; a bound token's own. */
  account?: string;
  /** Agent of the configuration; the default one if none is named. */
  agent?: string;
  /** Directory of the host, as an absolute path; only for callers that are bound to no account. */
  directory?: string;
  /** Run on a directory of the host, by its id; only for callers that are bound to no account. */
  run?: string;
  /** Who shares the sandbox; as configured if none is given. */
  scope?: "session" | "agent" | "shared";
  /** Session key; the agent's main session if none is named. */
  session?: string;
  /** 0 is the workspace, others are those of sandbox.overlay.more. */
  tree?: number;
}

export interface SyncTake {
  /** Take also what needs approval. */
  approve?: boolean;
  /** Of the host; by the agent's branch if none is given. */
  branch?: string;
  /** A branch inside; what is checked out there if none is given. */
  from?: string;
  /** The last commit that was looked at; others are refused. Needed with approve and reason. */
  head?: string;
  /** Why secrets that were found are taken nevertheless. */
  reason?: string;
  subject?: SyncSubject;
  /** Do not sign, though git is configured to. */
  unsigned?: boolean;
}

export interface SyncTaken {
  branch: string;
  commits: number;
  /** The branch is new. */
  created?: boolean;
  /** The last commit of the branch. */
  head: string;
  notes?: Array<string>;
  /** That keeps the commits. */
  ref?: string;
  signed?: boolean;
}

export interface SyncTree {
  /** On the host; only for callers that are bound to no account. */
  base?: string;
  /** What the agent committed, if the workspace is a repository and the sandbox runs. Files as they were committed are withheld. */
  commits?: SyncCommits | null;
  counts: SyncCounts;
  /** Deletions first. */
  entries: Array<SyncEntry>;
  /** Of everything that is listed and counted. */
  hash: string;
  /** Files of the host that are not visible inside, because they hold secrets. */
  hidden: number;
  /** Files of the host that are not what the agent began with, and that it has not been given since. */
  hostChanged: number;
  /** Not all files of the host were looked at for that: there are more than 5,000. */
  hostPartly?: boolean;
  /** Of the sandbox's overlays, the same in all of its trees. */
  id: string;
  kind: "kernel" | "copy";
  /** What could not be looked at, and why. */
  note?: string;
  since?: string;
  /** Inside the sandbox. */
  target: string;
  /** The host ended without writing everything: the changes may be incomplete. */
  torn?: boolean;
  tree: number;
  /** What is never taken over, counted by reason. */
  withheld?: Array<SyncGroup>;
}

export interface SyncTrees {
  trees: Array<SyncTree>;
}

export interface SyncUndo {
  id: string;
  subject?: SyncSubject;
}

export interface Task {
  accepted: string;
  account?: string;
  agent: string;
  ended?: string;
  /** null if it succeeded or is not over. */
  error: Failure | null;
  /** What to do about the error. */
  hint?: string;
  id: string;
  key: string;
  microUsd?: number;
  model?: string;
  /** How it was carried out. */
  report?: Report | null;
  /** Of the transcript. */
  sessionId?: string;
  started?: string;
  state: "queued" | "running" | "done" | "failed" | "aborted";
  /** The answer. */
  text: string;
  usage?: Usage;
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

export interface TerminalControl {
  resize: TerminalSize | null;
}

export interface TerminalEvent {
  bytes?: number;
  result?: ExecResult | null;
  type: "lost" | "ended";
}

export interface TerminalSize {
  cols: number;
  rows: number;
}

export interface Token {
  /** That it is bound to; absent is none. */
  account?: string;
  created: string;
  expires?: string;
  id: string;
  lastUsed?: string;
  name?: string;
  revoked?: string;
  scope: string;
}

export interface Tokens {
  tokens: Array<Token>;
}

export interface ToolDecision {
  allowed: boolean;
  fix?: Array<string>;
  name: string;
  reason: string;
}

export interface Usage {
  cacheRead: number;
  cacheWrite: number;
  input: number;
  output: number;
}

export interface Variant {
  description: string;
  /** graphId of a run. */
  id: string;
  /** What its sandboxes are made of; absent is the installation's default. */
  image?: string;
  /** Bytes. */
  memory: number;
  name: string;
  /** It can work on a directory of the host. */
  onDirectory?: boolean;
  /** It works at another service, not in a sandbox. */
  remote?: boolean;
  timeoutSeconds: number;
  /** Why it cannot work now. */
  unavailable?: string;
}

export interface Variants {
  variants: Array<Variant>;
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

export interface ViewBrowser {
  /** The viewer may take the browser over; this needs the scope operator. */
  control?: boolean;
  /** The target id of the tab that is shown; the first if not given. */
  tab?: string;
}

export interface ViewEvent {
  /** This viewer may take the browser over. */
  control?: boolean;
  detail?: string;
  driver?: "agent" | "you" | "person";
  height?: number;
  title?: string;
  type: "frame" | "taken" | "released" | "refused" | "state";
  /** Of the page that is shown. */
  url?: string;
  /** Of the page, in its own pixels. */
  width?: number;
}

export interface ViewInput {
  button?: "left" | "middle" | "right";
  clicks?: number;
  code?: string;
  dx?: number;
  dy?: number;
  event?: "down" | "up" | "move";
  key?: string;
  text?: string;
  type: "take" | "release" | "mouse" | "wheel" | "key" | "text";
  x?: number;
  y?: number;
}

export interface WatchWindow {
  /** The viewer may take the browser over; this needs the scope operator. */
  control?: boolean;
}
