import { signal } from "@preact/signals";
import { render } from "preact";
import { ApiError, logIn, me, resume } from "./api";
import type { Problem } from "./api-types";
import "./guard";
import { Lazy } from "./lazy";
import { LogInPage } from "./pages/login";
import { Empty } from "./parts/parts";
import { places } from "./places";
import { route } from "./router";
import { Shell } from "./shell";

function Page() {
  const { page, id } = route.value;
  const place = places.find((candidate) => candidate.page === page);
  return place === undefined ? <Empty>There is no such page.</Empty> : <Lazy key={page} load={place.load} id={id} />;
}

const begun = signal(false);
const failed = signal<Problem | undefined>(undefined);

function App() {
  if (!begun.value) return null;
  if (me.value === null) return <LogInPage first={failed.value} />;
  return <Shell places={places}><Page key={`${me.value.name} ${me.value.account ?? ""}`} /></Shell>;
}

/** begin logs in with the code of the address, which is removed at once, or resumes a log-in. */
async function begin(): Promise<void> {
  const theme = localStorage.getItem("atoll.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset["theme"] = theme;
  const code = /^#code=([A-Z2-7]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, "", `${location.pathname}#/now`);
  try {
    if (code !== undefined) await logIn({ code });
    else await resume();
  } catch (error) {
    failed.value = error instanceof ApiError ? error.problem : { type: "about:blank", title: "Unreachable", status: 0, code: "unreachable", detail: "The gateway does not answer." };
  }
  if (code !== undefined) dispatchEvent(new HashChangeEvent("hashchange"));
  begun.value = true;
}

render(<App />, document.getElementById("app")!);
void begin();
