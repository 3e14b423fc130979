import { useState } from "preact/hooks";
import { may, me } from "../api";
import type { CreatedToken, Devices, Token, Tokens } from "../api-types";
import { gatewayTime } from "../clock";
import { ActionProblem, useAction } from "../parts/action";
import { printable } from "../parts/format";
import { Ago, Card, Confirm, Empty, Id, Loaded, State } from "../parts/parts";
import { useResource } from "../resource";

const scopes = ["read", "run", "operator.approvals", "operator", "admin"];

/** AccessPage shows who the caller is, and the tokens and devices of the gateway. */
export function AccessPage() {
  const tokens = useResource<Tokens>("/api/v1/tokens", 10000);
  const [creating, setCreating] = useState(false);
  const bound = me.value?.account !== undefined && me.value.account !== "";
  return (
    <div class="page">
      <Card title="You">
        <dl class="facts">
          <div><dt>Token</dt><dd>{me.value?.name === "socket" ? "the owner, by atoll dashboard" : printable(me.value?.name || "no name", 100)}</dd></div>
          <div><dt>Scope</dt><dd>{me.value?.scope}</dd></div>
          <div><dt>Account</dt><dd>{me.value?.account || "all"}</dd></div>
        </dl>
      </Card>
      <Card title="Tokens" extra={may("admin") && !creating && <button type="button" class="primary" onClick={() => setCreating(true)}>New token</button>}>
        {creating && <Create bound={bound} onMade={tokens.reload} onClose={() => setCreating(false)} />}
        <Loaded of={tokens}>{(data) => data.tokens.length === 0 ? <Empty command="atoll token create --role run">No tokens.</Empty> : <TokenTable tokens={data.tokens} onChange={tokens.reload} />}</Loaded>
      </Card>
      {may("admin") && !bound && <DevicesCard />}
    </div>
  );
}

/** Create makes a token and shows its text this once; it is forgotten when the card is closed. */
function Create({ bound, onMade, onClose }: { bound: boolean; onMade: () => void; onClose: () => void }) {
  const [given, setGiven] = useState({ name: "", scope: "read", account: "", days: "30" });
  const [made, setMade] = useState<CreatedToken>();
  const action = useAction();
  const field = (name: keyof typeof given) => ({ value: given[name], onInput: (event: { currentTarget: { value: string } }) => setGiven({ ...given, [name]: event.currentTarget.value }) });
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const { name, scope, account, days } = given;
    const token = await action.run<CreatedToken>("POST", "/api/v1/tokens", { scope, days: Number(days), ...(name ? { name } : {}), ...(account ? { account } : {}) });
    setMade(token);
    if (token) onMade();
  };
  if (made) return <div class="row made" role="status"><span>Shown this once:</span><code>{made.text}</code><button type="button" onClick={() => void navigator.clipboard.writeText(made.text)}>Copy</button><button type="button" onClick={onClose}>Forget it</button></div>;
  return (
    <form class="row" aria-label="New token" onSubmit={(event) => void submit(event)}>
      <label>Name <input {...field("name")} autofocus maxLength={100} /></label>
      <label>Scope <select {...field("scope")}>{scopes.map((scope) => <option key={scope}>{scope}</option>)}</select></label>
      {!bound && <label>Account <input {...field("account")} placeholder="all" /></label>}
      <label>Days <input type="number" min="1" max="365" required {...field("days")} /></label>
      <button type="submit" class="primary" disabled={action.busy}>Make it</button><button type="button" onClick={onClose}>Close</button>
      <ActionProblem of={action} />
    </form>
  );
}

function stateOf(token: Token): string {
  if (token.revoked) return "revoked";
  return token.expires && Date.parse(token.expires) < gatewayTime() ? "expired" : "valid";
}

function TokenTable({ tokens, onChange }: { tokens: Token[]; onChange: () => void }) {
  const action = useAction();
  const revoke = (id: string): void => void action.run("DELETE", `/api/v1/tokens/${encodeURIComponent(id)}`).then(onChange);
  return (
    <>
      <ActionProblem of={action} />
      <table class="plain">
        <thead><tr><th>State</th><th>Name</th><th>Id</th><th>Scope</th><th>Account</th><th class="right">Used</th><th class="right">Expires</th><th><span class="sr">Actions</span></th></tr></thead>
        <tbody>{tokens.map((token) => (
          <tr key={token.id}><td><State is={stateOf(token)} /></td><td>{printable(token.name ?? "", 100)}</td><td><Id value={token.id} /></td><td>{token.scope}</td><td>{token.account ?? "all"}</td><td class="right"><Ago at={token.lastUsed} /></td><td class="right"><Ago at={token.expires} /></td>
            <td class="right">{stateOf(token) === "valid" && <Confirm label="Revoke" question={`Revoke the token ${token.name || token.id}? What uses it is refused at once.`} onYes={() => revoke(token.id)} />}</td></tr>
        ))}</tbody>
      </table>
    </>
  );
}

/** DevicesCard lists the devices that showed a key of their own; one that waits is paired here. */
function DevicesCard() {
  const devices = useResource<Devices>("/api/v1/devices", 10000);
  const action = useAction();
  const change = (method: string, path: string): void => void action.run(method, `/api/v1/devices/${path}`).then(devices.reload);
  return (
    <Card title="Devices">
      <ActionProblem of={action} />
      <Loaded of={devices}>{(data) => data.devices.length === 0 ? <Empty>No device has connected.</Empty> : (
        <table class="plain">
          <thead><tr><th>State</th><th>Client</th><th>Platform</th><th>Id</th><th class="right">Used</th><th><span class="sr">Actions</span></th></tr></thead>
          <tbody>{data.devices.map((device) => (
            <tr key={device.id}><td><State is={device.paired ? "valid" : "waiting"} /></td><td>{printable(device.client, 100)}</td><td>{printable(device.platform, 100)}</td><td><Id value={device.id} /></td><td class="right"><Ago at={device.lastUsed} /></td>
              <td class="right">{!device.paired && <Confirm label="Pair" danger={false} question={`Pair the device ${device.id.slice(0, 16)} of ${printable(device.client, 60)}? It then speaks for the token that it showed.`} onYes={() => change("POST", `${encodeURIComponent(device.id)}/pair`)} />} <Confirm label="Remove" question={`Remove the device ${device.id.slice(0, 16)}?`} onYes={() => change("DELETE", encodeURIComponent(device.id))} /></td></tr>
          ))}</tbody>
        </table>
      )}</Loaded>
    </Card>
  );
}
