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
  interrupted: "The gateway ended while it ran. Start it again.",
  sandbox_failed: "Its sandbox could not be made. Health says what this machine lacks.",
};
