import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "./api";
import type { Problem } from "./api-types";

/** Resource is what a path of the gateway answers, kept up to date. */
export interface Resource<T> {
  data: T | undefined;
  problem: Problem | undefined;
  /** stale: the data is of before the problem. */
  stale: boolean;
  reload: () => void;
}

const unreachable: Problem = { type: "about:blank", title: "Unreachable", status: 0, code: "unreachable", detail: "The gateway does not answer.", hint: "Is it running? `atoll gateway status`" };

/** useResource loads a path now and then every so many milliseconds while the page is visible. */
export function useResource<T>(path: string, every = 0): Resource<T> {
  const [state, setState] = useState<{ path: string; data?: T; problem?: Problem }>({ path });
  const [count, setCount] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async (): Promise<void> => {
      try {
        const data = await call<T>("GET", path, undefined, abort.signal);
        setState({ path, data });
      } catch (error) {
        if (abort.signal.aborted) return;
        const problem = error instanceof ApiError ? error.problem : unreachable;
        setState((old) => ({ path, problem, ...(old.path === path && old.data !== undefined ? { data: old.data } : {}) }));
      }
      if (every > 0 && !abort.signal.aborted) timer = setTimeout(() => void whenVisible(), every);
    };
    const whenVisible = async (): Promise<void> => {
      if (!document.hidden) return load();
      timer = setTimeout(() => void whenVisible(), every);
    };
    void load();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path, every, count]);
  const current = state.path === path ? state : { path, data: undefined, problem: undefined };
  return { data: current.data, problem: current.problem, stale: current.problem !== undefined && current.data !== undefined, reload: () => setCount((n) => n + 1) };
}
