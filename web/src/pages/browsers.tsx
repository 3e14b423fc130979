import { useEffect, useState } from "preact/hooks";
import { ApiError, call, may } from "../api";
import type { Browser, BrowserEndpoint, Browsers, Problem } from "../api-types";
import type { Props } from "../lazy";
import { count } from "../parts/format";
import { List } from "../parts/list";
import { Confirm, Empty, Loaded, ProblemBox, State } from "../parts/parts";
import { useResource } from "../resource";
import { link } from "../router";
import { addressOf, type Kind } from "../viewer/view";
import { Viewer } from "../viewer/viewer";

/** BrowsersPlace is the list of browsers, or one of them. */
export function BrowsersPlace({ id }: Props) {
  return id ? <BrowserPage key={id} name={id} /> : <BrowsersPage />;
}

function stateOf(browser: Browser): string {
  return browser.open ? "running" : browser.running ? "ended" : "stopped";
}

function driverOf(browser: Browser): string {
  return browser.person ? "a person" : browser.open ? "the agent" : "";
}

/** BrowsersPage lists the browsers in sandboxes. */
function BrowsersPage() {
  const [text, setText] = useState("");
  const all = useResource<Browsers>("/api/v1/browsers", 3000);
  return (
    <div class="page full">
      <div class="tools">
        <input type="search" aria-label="Filter" placeholder="Filter by name, agent, session" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <span class="grow" />
        {all.data && <span class="faint">{count(all.data.browsers.length)} browsers</span>}
      </div>
      <Loaded of={all}>{(data) => {
        const rows = data.browsers.filter((one) => `${one.name} ${one.agentId} ${one.sessionKey} ${one.account ?? ""}`.toLowerCase().includes(text.toLowerCase()));
        if (rows.length === 0) return <Empty command="atoll browser open https://example.com/">{text ? "No browser matches." : "No browsers yet."}</Empty>;
        return <List label="Browsers" rows={rows} keyOf={(one) => one.name} address={(one) => link("browsers", one.name)} columns={[
          { title: "State", width: "110px", cell: (one) => <State is={stateOf(one)} /> },
          { title: "Name", width: "minmax(180px, 2fr)", cell: (one) => one.name },
          { title: "Agent", wide: true, width: "minmax(90px, 1fr)", cell: (one) => one.agentId },
          { title: "Session", wide: true, width: "minmax(120px, 2fr)", cell: (one) => one.sessionKey },
          { title: "Driver", width: "100px", cell: driverOf },
          { title: "Window", wide: true, width: "80px", cell: (one) => (one.window ? "yes" : "") },
          { title: "Viewers", width: "80px", right: true, cell: (one) => one.viewers || "" },
          { title: "Programs", wide: true, width: "90px", right: true, cell: (one) => one.programs || "" },
          { title: "Account", wide: true, width: "100px", cell: (one) => one.account ?? "" },
        ]} />;
      }}</Loaded>
    </div>
  );
}

/** BrowserPage shows one browser: what it shows, who drives it, and a button that ends it. */
function BrowserPage({ name }: { name: string }) {
  const all = useResource<Browsers>("/api/v1/browsers", 3000);
  const path = `/api/v1/browsers/${encodeURIComponent(name)}`;
  return (
    <div class="page full">
      <Loaded of={all}>{(data) => {
        const browser = data.browsers.find((one) => one.name === name);
        if (browser === undefined) return <Empty>There is no such browser.</Empty>;
        return (
          <>
            <div class="title">
              <State is={stateOf(browser)} /><h2>{browser.name}</h2><span class="faint">{browser.sessionKey}</span><span class="grow" />
              {may("operator") && browser.open && <Confirm label="Stop" question={`End the browser ${browser.name}? Its tabs and cookies go with it.`} onYes={() => void call("POST", `${path}/stop`).then(all.reload, all.reload)} />}
            </div>
            {!browser.view ? <Empty>People may not watch this browser: sandbox.browser.view is off.</Empty>
              : !may("run") ? <Empty>To watch it takes a token that may run something.</Empty>
              : !browser.open ? <Empty>The browser does not run. It starts with the next use.</Empty>
              : <Watch path={path} browser={browser} />}
          </>
        );
      }}</Loaded>
    </div>
  );
}

/** Watch opens a view with a ticket, and again when a person asks for it. */
function Watch({ path, browser }: { path: string; browser: Browser }) {
  const kind: Kind = browser.window ? "vnc" : "view";
  const [address, setAddress] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setProblem(undefined);
    call<BrowserEndpoint>("POST", `${path}/${kind}`, { control: may("operator") && browser.control }, abort.signal).then(
      (endpoint) => setAddress(addressOf(new URL(endpoint.wsEndpoint).pathname)),
      (error: unknown) => { if (error instanceof ApiError) setProblem(error.problem); },
    );
    return () => abort.abort();
  }, [path, kind, tries]);
  if (problem) return <ProblemBox problem={problem} />;
  if (address !== "") return <Viewer key={address} address={address} kind={kind} name={browser.name} onEnd={() => setAddress("")} />;
  return <Again onClick={() => setTries((n) => n + 1)} />;
}

/** Again opens a view that has ended, once a person wants it. */
function Again({ onClick }: { onClick: () => void }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 500);
    return () => clearTimeout(timer);
  }, []);
  return late ? <div class="empty"><p>The view is not open.</p><button type="button" onClick={onClick}>Connect again</button></div> : null;
}
