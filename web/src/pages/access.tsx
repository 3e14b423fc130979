import { me } from "../api";
import type { Token, Tokens } from "../api-types";
import { printable } from "../parts/format";
import { Ago, Card, Empty, Id, Loaded, State } from "../parts/parts";
import { useResource } from "../resource";

/** AccessPage shows who the caller is, and the tokens of the gateway. */
export function AccessPage() {
  const tokens = useResource<Tokens>("/api/v1/tokens", 10000);
  return (
    <div class="page">
      <Card title="You">
        <dl class="facts">
          <div><dt>Token</dt><dd>{me.value?.name === "socket" ? "the owner, by atoll dashboard" : printable(me.value?.name || "no name", 100)}</dd></div>
          <div><dt>Scope</dt><dd>{me.value?.scope}</dd></div>
          <div><dt>Account</dt><dd>{me.value?.account || "all"}</dd></div>
        </dl>
      </Card>
      <Card title="Tokens">
        <Loaded of={tokens}>{(data) => data.tokens.length === 0 ? <Empty command="atoll token create --scope run">No tokens.</Empty> : <TokenTable tokens={data.tokens} />}</Loaded>
      </Card>
    </div>
  );
}

function stateOf(token: Token): string {
  if (token.revoked) return "revoked";
  return token.expires && Date.parse(token.expires) < Date.now() ? "expired" : "valid";
}

function TokenTable({ tokens }: { tokens: Token[] }) {
  return (
    <table class="plain">
      <thead><tr><th>State</th><th>Name</th><th>Id</th><th>Scope</th><th>Account</th><th class="right">Used</th><th class="right">Expires</th></tr></thead>
      <tbody>{tokens.map((token) => (
        <tr key={token.id}><td><State is={stateOf(token)} /></td><td>{printable(token.name ?? "", 100)}</td><td><Id value={token.id} /></td><td>{token.scope}</td><td>{token.account ?? "all"}</td><td class="right"><Ago at={token.lastUsed} /></td><td class="right"><Ago at={token.expires} /></td></tr>
      ))}</tbody>
    </table>
  );
}
