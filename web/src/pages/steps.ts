import type { Call, Event as RunEvent, Failure, History } from "../api-types";

/** Step is what a person sees as one thing that happened: words, a tool call with its result, or a notice. */
export interface Step {
  seq: number;
  at: number;
  kind: "words" | "tool" | "step" | "usage" | "error" | "other";
  text: string;
  call?: Call;
  result?: string;
  /** Milliseconds that the tool took. */
  took?: number;
  failed: boolean;
  microUsd?: number;
  error?: Failure;
}

/** Steps puts the events of a run together, as they come. */
export class Steps {
  readonly all: Step[] = [];
  /** last is the number of the last event. */
  last = 0;
  private readonly calls = new Map<string, Step>();

  /** add takes events over, in their order. */
  add(events: RunEvent[]): void {
    for (const event of events) {
      if (event.seq <= this.last) continue;
      this.last = event.seq;
      this.one(event);
    }
  }

  private one(event: RunEvent): void {
    const last = this.all[this.all.length - 1];
    const call = event.call ?? undefined;
    if (event.type === "text_delta" && last?.kind === "words") {
      last.text += event.text ?? "";
      return;
    }
    const known = event.type === "tool_result" && call ? this.calls.get(call.id) : undefined;
    if (known && known.result === undefined) {
      known.result = event.text ?? "";
      known.failed = event.isError ?? false;
      known.took = event.tookMs ?? Date.parse(event.at) - known.at;
      return;
    }
    const step = stepOf(event);
    if (step.kind === "step" && last?.kind === "step" && last.text === step.text) return;
    if (call && event.type === "tool_call") this.calls.set(call.id, step);
    this.all.push(step);
  }
}

const slack = 1000;

/** stepsOfTask returns the steps of a session's history between two times: those of one task, as a session has one at a time. */
export function stepsOfTask(history: History, from: number, to: number): Steps {
  const steps = new Steps();
  const events: RunEvent[] = [];
  const add = (event: Omit<RunEvent, "seq">): void => void events.push({ ...event, seq: events.length + 1 });
  for (const message of history.messages) {
    const at = message.at ?? "";
    const when = Date.parse(at);
    if (!(when >= from - slack && when <= to + slack)) continue;
    if (message.role === "tool") add({ at, type: "tool_result", text: message.content ?? "", call: { id: message.callId ?? "", name: "", args: "" }, isError: message.isError ?? false });
    else if (message.content) add({ at, type: message.role === "user" ? "notice" : "text_delta", text: message.content });
    for (const call of message.calls ?? []) add({ at, type: "tool_call", call });
  }
  steps.add(events);
  return steps;
}

function stepOf(event: RunEvent): Step {
  const step: Step = { seq: event.seq, at: Date.parse(event.at), kind: kindOf(event), text: event.text ?? event.step ?? event.type, failed: event.isError ?? event.type === "error" };
  if (event.call) step.call = event.call;
  if (event.error) step.error = event.error;
  if (event.microUsd !== undefined) step.microUsd = event.microUsd;
  if (event.type === "tool_result") {
    step.result = event.text ?? "";
    if (event.tookMs !== undefined) step.took = event.tookMs;
  }
  return step;
}

function kindOf(event: RunEvent): Step["kind"] {
  switch (event.type) {
    case "text_delta": return "words";
    case "tool_call": case "tool_result": return "tool";
    case "step": case "started": case "prepared": case "done": return "step";
    case "usage_report": return "usage";
    case "error": return "error";
    default: return "other";
  }
}

/** Change is what one step did to one file. */
export interface Change {
  path: string;
  diff: string;
}

/** changeOf returns what a tool call changed in a file, as a diff; undefined if it changed none. */
export function changeOf(step: Step): Change | undefined {
  if (step.call === undefined || step.failed) return undefined;
  let args: Record<string, unknown>;
  try {
    args = JSON.parse(step.call.args) as Record<string, unknown>;
  } catch {
    return undefined;
  }
  const text = (name: string): string => (typeof args[name] === "string" ? args[name] : "");
  const path = text("path") || text("file_path");
  const at = step.result?.search(/^(--- |@@ )/m) ?? -1;
  if (path !== "" && at >= 0 && /edit|write|patch/i.test(step.call.name)) return { path, diff: step.result?.slice(at) ?? "" };
  const patch = text("patch") || (step.call.name === "apply_patch" ? text("input") : "");
  if (patch !== "") return { path: /^\*\*\* (?:Add|Update|Delete) File: (.+)$/m.exec(patch)?.[1] ?? "patch", diff: patch };
  if (path === "") return undefined;
  if (typeof args["content"] === "string" && /write/i.test(step.call.name)) return { path, diff: `+++ ${path}\n${prefixed("+", text("content"))}` };
  const pieces = Array.isArray(args["edits"]) ? (args["edits"] as Record<string, unknown>[]) : [args];
  const hunks = pieces.map((piece) => hunk(piece["oldText"] ?? piece["old_string"], piece["newText"] ?? piece["new_string"])).filter((one) => one !== "");
  return hunks.length === 0 ? undefined : { path, diff: `+++ ${path}\n${hunks.join("\n")}` };
}

function hunk(before: unknown, after: unknown): string {
  if (typeof before !== "string" || typeof after !== "string") return "";
  return `@@\n${prefixed("-", before)}\n${prefixed("+", after)}`;
}

function prefixed(mark: string, text: string): string {
  return text.replace(/\n$/, "").split("\n").map((line) => mark + line).join("\n");
}

/** countsOf returns how many lines a diff adds and removes. */
export function countsOf(diff: string): { added: number; removed: number } {
  const counts = { added: 0, removed: 0 };
  for (const line of diff.split("\n")) {
    if (line.startsWith("+") && !line.startsWith("+++")) counts.added++;
    else if (line.startsWith("-") && !line.startsWith("---")) counts.removed++;
  }
  return counts;
}
