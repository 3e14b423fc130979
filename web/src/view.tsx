// The page that shows one browser to who has a ticket: `atoll browser watch` prints its
// address. The ticket is in the fragment, which is removed at once and good for one
// connection.
import { render } from "preact";
import { useState } from "preact/hooks";
import "./guard";
import { Empty } from "./parts/parts";
import { addressOf, type Kind } from "./viewer/view";
import { Viewer } from "./viewer/viewer";

const [, name = "", endpoint = "view", ticket = ""] = /^#([A-Za-z0-9._-]{1,128})\/(view|vnc)\/([A-Z2-7]{20,64})$/.exec(location.hash) ?? [];
history.replaceState(null, "", location.pathname);

function ViewPage() {
  const [ended, setEnded] = useState<"never" | "refused" | "over">(ticket === "" ? "refused" : "never");
  return (
    <main class="alone" id="main">
      <h1><img src="/ui/icon.svg" alt="" width="20" height="20" />{name || "A browser"}</h1>
      {ended === "never" && <Viewer address={addressOf(`/api/v1/browsers/${name}/${endpoint}/${ticket}`)} kind={endpoint as Kind} name={name} onEnd={(opened) => setEnded(opened ? "over" : "refused")} />}
      {ended === "over" && <Empty command={`atoll browser watch ${name}`}>The view has ended: the browser was stopped, or the gateway closed it.</Empty>}
      {ended === "refused" && <Empty command={`atoll browser watch ${name || "BROWSER"}`}>This address is good once, within a minute after it was made.</Empty>}
    </main>
  );
}

const theme = localStorage.getItem("atoll.theme");
if (theme === "dark" || theme === "light") document.documentElement.dataset["theme"] = theme;
render(<ViewPage />, document.getElementById("app")!);
