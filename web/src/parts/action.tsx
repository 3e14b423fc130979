import { useState } from "preact/hooks";
import { ApiError, call } from "../api";
import type { Problem } from "../api-types";
import { ProblemBox } from "./parts";

/** Action is a request that a person makes with a button. */
export interface Action {
  busy: boolean;
  /** run sends it; the answer is undefined if that did not work. */
  run: <T>(method: string, path: string, body?: unknown) => Promise<T | undefined>;
  problem: Problem | undefined;
  clear: () => void;
}

/** useAction returns what sends requests, one at a time, and says why one did not work. */
export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const run = async <T,>(method: string, path: string, body?: unknown): Promise<T | undefined> => {
    setBusy(true);
    setProblem(undefined);
    try {
      return await call<T>(method, path, body);
    } catch (error) {
      setProblem(error instanceof ApiError ? error.problem : { type: "about:blank", title: "Unreachable", status: 0, code: "unreachable", detail: "The gateway does not answer." });
      return undefined;
    } finally {
      setBusy(false);
    }
  };
  return { busy, run, problem, clear: () => setProblem(undefined) };
}

/** ActionProblem shows why an action did not work. */
export function ActionProblem({ of }: { of: Action }) {
  return of.problem === undefined ? null : <ProblemBox problem={of.problem} />;
}
