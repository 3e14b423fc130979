import { useState } from "preact/hooks";
import type { Config, Explanation } from "../api-types";
import { printable } from "../parts/format";
import { List } from "../parts/list";
import { Card, Loaded, State } from "../parts/parts";
import { useResource } from "../resource";
import { go, link, route } from "../router";

const fields = { agent: "Agent", session: "Session", tool: "Tool", path: "Path" };

/** PolicyPage says what applies to a session, a tool and a path, and why. The question is in the address. */
export function PolicyPage() {
  const query = route.value.query;
  const given = new URLSearchParams(Object.keys(fields).map((name): [string, string] => [name, query.get(name) ?? ""]).filter(([, value]) => value !== ""));
  const explanation = useResource<Explanation>(`/api/v1/policy/explain?${given.toString()}`);
  return (
    <div class="page">
      <Ask key={given.toString()} given={given} />
      <Loaded of={explanation}>{(data) => <><Explained of={data} /><Settings agent={data.agentId} /></>}</Loaded>
    </div>
  );
}

function Ask({ given }: { given: URLSearchParams }) {
  const [values, setValues] = useState<Record<string, string>>(Object.fromEntries(given));
  const submit = (event: Event): void => {
    event.preventDefault();
    go(link("policy", "", values));
  };
  return (
    <form class="tools" onSubmit={submit} aria-label="Explain">
      {Object.entries(fields).map(([name, title]) => <label key={name}>{title} <input value={values[name] ?? ""} placeholder={name === "agent" ? "the default one" : ""} onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })} /></label>)}
      <button type="submit" class="primary">Explain</button>
    </form>
  );
}

function Explained({ of: data }: { of: Explanation }) {
  return (
    <>
      <Card title="Where it works" extra={<State is={data.sandboxed ? "sandboxed" : "on the host"} />}>
        <p>{printable(data.reason, 600)}</p>
        <dl class="facts">
          <Fact title="Agent">{data.agentId}</Fact><Fact title="Session">{printable(data.sessionKey, 200)}</Fact><Fact title="Mode">{data.mode}</Fact>
          <Fact title="Scope">{data.scope}</Fact><Fact title="Scope key">{printable(data.scopeKey, 200)}</Fact><Fact title="Sandbox"><a href={link("sandboxes", data.containerName)}>{data.containerName}</a></Fact>
          <Fact title="Image">{data.image}</Fact><Fact title="Network">{data.network}</Fact><Fact title="Workspace">{data.workspaceAccess}</Fact>
        </dl>
        {data.refused?.map((reason) => <p key={reason} class="bad">Refused: {printable(reason, 600)}</p>)}
      </Card>
      {data.tool && <Card title={`Tool ${printable(data.tool.name, 80)}`} extra={<State is={data.tool.allowed ? "allowed" : "denied"} />}>
        <p>{printable(data.tool.reason, 600)}</p>{data.tool.fix?.map((line) => <p key={line} class="hint">{printable(line, 600)}</p>)}
      </Card>}
      {data.path && <Card title={`Path ${printable(data.path.input, 200)}`} extra={<State is={data.path.error ? "refused" : data.path.writable ? "writable" : "read only"} />}>
        {data.path.error ? <p class="bad">{printable(data.path.error, 600)}</p> : <p>Inside it is <code>{printable(data.path.inside ?? "", 300)}</code>.</p>}
      </Card>}
    </>
  );
}

/** Settings shows every setting of an agent with where it came from; nothing can be changed here. */
function Settings({ agent }: { agent: string }) {
  const config = useResource<Config>(`/api/v1/config?agent=${encodeURIComponent(agent)}`);
  const [text, setText] = useState("");
  return (
    <Card title="Settings" extra={<input type="search" aria-label="Filter settings" placeholder="Filter" value={text} onInput={(event) => setText(event.currentTarget.value)} />}>
      <Loaded of={config}>{(data) => (
        <>
          <p class="faint">Of <code>{printable(data.path, 300)}</code>. They are changed in the file: <code>atoll config check</code> says whether it is right.</p>
          <div class="tall high"><List label="Settings" rows={data.settings.filter((setting) => `${setting.key} ${setting.value} ${setting.source}`.toLowerCase().includes(text.toLowerCase()))} keyOf={(setting) => setting.key} columns={[
            { title: "Key", width: "minmax(160px, 1.4fr)", cell: (setting) => <code>{printable(setting.key, 200)}</code> },
            { title: "Value", width: "minmax(120px, 2fr)", cell: (setting) => <code title={printable(setting.value, 2000)}>{printable(setting.value, 300)}</code> },
            { title: "From", width: "80px", wide: true, cell: (setting) => <span class={setting.source === "default" ? "faint" : ""}>{setting.source}</span> },
            { title: "Written at", width: "minmax(120px, 1.2fr)", wide: true, cell: (setting) => <code class="faint">{setting.path ? `${printable(setting.path, 200)}${setting.line ? `:${setting.line}` : ""}` : ""}</code> },
          ]} /></div>
        </>
      )}</Loaded>
    </Card>
  );
}

function Fact({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return <div><dt>{title}</dt><dd>{children}</dd></div>;
}
