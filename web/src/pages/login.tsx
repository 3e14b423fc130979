import { useState } from "preact/hooks";
import { ApiError, logIn } from "../api";
import type { Problem } from "../api-types";
import { ProblemBox } from "../parts/parts";

/** LogInPage takes a token once; `atoll dashboard` opens the page with a code instead. */
export function LogInPage({ first }: { first?: Problem | undefined }) {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem | undefined>(first);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await logIn({ token: token.trim() });
    } catch (error) {
      setProblem(error instanceof ApiError ? error.problem : { type: "about:blank", title: "Unreachable", status: 0, code: "unreachable", detail: "The gateway does not answer." });
    }
    setToken("");
    setBusy(false);
  };
  return (
    <main class="login">
      <img src="/ui/icon.svg" alt="" width="40" height="40" />
      <h1>Atoll</h1>
      <p>On the machine of the gateway, this opens the dashboard without a token:</p>
      <code>atoll dashboard</code>
      <form onSubmit={(event) => void submit(event)}>
        <label for="token">Or paste a token. It is not kept.</label>
        <input id="token" type="password" autocomplete="off" spellcheck={false} value={token} onInput={(event) => setToken(event.currentTarget.value)} required />
        <button type="submit" class="primary" disabled={busy || token.trim() === ""}>Log in</button>
      </form>
      {problem && <ProblemBox problem={problem} />}
    </main>
  );
}
