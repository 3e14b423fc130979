import type { Run } from "./api-types";

/** stateOf returns the state of a run in one word. */
export function stateOf(run: Run): string {
  if (run.error) return "failed";
  return run.step === "done" ? "done" : run.step === "accepted" ? "queued" : "running";
}

/** tookOf returns how long a run took, or has taken, in milliseconds. */
export function tookOf(run: Run, now: number): number {
  const begun = Date.parse(run.started && !run.started.startsWith("0001") ? run.started : run.created);
  const ended = run.ended && !run.ended.startsWith("0001") ? Date.parse(run.ended) : now;
  return Math.max(0, ended - begun);
}

/** failures says what each code of a failed run means and what to do next. */
export const failures: Record<string, string> = {
  oom_killed: "It needed more memory than it may have. Give it more with the field memory of the request.",
  timeout: "It took longer than it may. Give it more time with timeoutSeconds.",
  budget: "Its budget was spent. Raise the budget of the request or of the account.",
  cancelled: "A person cancelled it.",
  interrupted: "The gateway ended while it ran, or the node of its sandbox was lost. Start it again.",
  agent_failed: "Its program ended with an error. Its last output is in the timeline.",
  agent_error: "The agent said that it failed.",
  no_output: "Its program printed no answer.",
  invalid_output: "Its program printed something else than an answer. Its last output is in the timeline.",
  killed: "Something killed its program.",
  disk_full: "The disk of the gateway is full. Health says how much there is.",
  quota_exceeded: "Its workspace is full. Raise the limit, or let it write less.",
  model_not_allowed: "Its agent may not ask this model.",
  unknown_model: "No provider has this model. The catalogue lists those that there are.",
  relay_failed: "Its commits could not be taken out. The page Code says why, and goes on with them.",
  sandbox_lost: "Its sandbox ended under it. Start it again.",
  external_unreachable: "The service that works for it does not answer.",
  workspace_failed: "Its workspace could not be made. Health says what this machine lacks.",
  sandbox_failed: "Its sandbox could not be made. Health says what this machine lacks.",
};
