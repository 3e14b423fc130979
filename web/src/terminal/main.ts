// The terminal of a process in a sandbox, in a document of its own: the library writes
// styles into the page, which the policy of the other pages forbids. The address is
// #SANDBOX, or #SANDBOX/PROCESS of one that runs, whose screen is shown again.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { ApiError, call, me, pageSecret, resume } from "../api";
import type { Process, TerminalEvent } from "../api-types";

const shell = "if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh";
const mostWaits = 8;

const status = document.getElementById("status")!;
const again = document.getElementById("again") as HTMLButtonElement;
const terminal = new Terminal({
  cursorBlink: false, scrollback: 5000, fontSize: 13, allowProposedApi: false, screenReaderMode: true,
  fontFamily: 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace',
  linkHandler: { activate: () => undefined },
  theme: { background: "#0f1315", foreground: "#dbe2e5", cursor: "#3fbfae" },
});
const fit = new FitAddon();

/** forget has sequences dropped with which a program inside would reach beyond its screen: titles, links, the clipboard, notifications. */
function forget(): void {
  for (const osc of [0, 1, 2, 7, 8, 9, 50, 52, 99, 133, 633, 777, 1337]) terminal.parser.registerOscHandler(osc, () => true);
  terminal.parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true); // DECRQSS
  terminal.parser.registerDcsHandler({ intermediates: "+", final: "q" }, () => true); // XTGETTCAP
}

/** start returns the process of the address, after starting one if it names none. */
async function start(box: string, process: string): Promise<string> {
  if (process !== "") return process;
  const started = await call<Process>("POST", `/api/v1/sandboxes/${encodeURIComponent(box)}/processes`, {
    command: shell, env: { TERM: "xterm-256color" }, terminal: { rows: terminal.rows, cols: terminal.cols },
  });
  history.replaceState(null, "", `#${encodeURIComponent(box)}/${encodeURIComponent(started.id)}`);
  return started.id;
}

let socket: WebSocket | undefined;
let offset = 0;
let waits = 0;

/** connect shows the terminal from where this page is, and again after a lost connection. */
function connect(box: string, process: string): void {
  const path = `/api/v1/sandboxes/${encodeURIComponent(box)}/processes/${encodeURIComponent(process)}/terminal?offset=${offset}`;
  const opened = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`, ["atoll", `atoll.page.${pageSecret()}`]);
  opened.binaryType = "arraybuffer";
  let ended = false;
  opened.onopen = () => {
    socket = opened;
    waits = 0;
    again.hidden = true;
    say(`connected to ${box}`);
    resize();
  };
  opened.onmessage = (message: MessageEvent<ArrayBuffer | string>) => {
    if (typeof message.data !== "string") {
      offset += message.data.byteLength;
      terminal.write(new Uint8Array(message.data));
      return;
    }
    const event = JSON.parse(message.data) as TerminalEvent;
    if (event.type === "lost") offset += event.bytes ?? 0;
    ended = event.type === "ended";
    if (ended) say(`the process has ended with status ${event.result?.exitCode ?? "?"}`);
  };
  opened.onclose = () => {
    socket = undefined;
    if (ended) return;
    again.hidden = false;
    again.onclick = () => connect(box, process);
    say("not connected");
    if (++waits <= mostWaits) setTimeout(() => socket === undefined && connect(box, process), Math.min(15000, 500 * 2 ** waits) * (0.5 + Math.random()));
  };
}

function resize(): void {
  fit.fit();
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ resize: { rows: terminal.rows, cols: terminal.cols } }));
}

function say(text: string): void {
  status.textContent = text;
}

async function begin(): Promise<void> {
  const [box = "", process = ""] = location.hash.slice(1).split("/").map(decodeURIComponent);
  terminal.loadAddon(fit);
  terminal.open(document.getElementById("screen")!);
  forget();
  fit.fit();
  await resume();
  if (me.value === null) return say("log in on the other pages first, and load this one again");
  const bytes = new TextEncoder();
  terminal.onData((text) => socket?.send(bytes.encode(text)));
  terminal.onBinary((text) => socket?.send(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  new ResizeObserver(resize).observe(document.getElementById("screen")!);
  try {
    connect(box, await start(box, process));
    terminal.focus();
  } catch (error) {
    say(error instanceof ApiError ? `${error.problem.detail ?? error.problem.title} ${error.problem.hint ?? ""}` : "the gateway does not answer");
  }
}

void begin();
