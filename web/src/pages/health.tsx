import { me } from "../api";
import type { Doctor, Health, Ready } from "../api-types";
import { printable } from "../parts/format";
import { Card, Loaded, State } from "../parts/parts";
import { useResource } from "../resource";

/** HealthPage shows whether the gateway can do its work, what its machine can enforce, and versions. */
export function HealthPage() {
  const health = useResource<Health>("/health", 5000);
  const ready = useResource<Ready>("/ready", 5000);
  return (
    <div class="page">
      <Card title="Gateway">
        <dl class="facts">
          <div><dt>Process</dt><dd><State is={health.problem ? "failed" : health.data ? "running" : "…"} /></dd></div>
          <div><dt>Can do its work</dt><dd><State is={ready.problem ? "failed" : ready.data ? "ready" : "…"} /></dd></div>
          <div><dt>Version</dt><dd>{health.data?.version ?? me.value?.version}</dd></div>
          <div><dt>Interface</dt><dd><a href="/openapi.json">openapi.json</a></dd></div>
        </dl>
        {ready.problem && <p class="hint">{ready.problem.detail}</p>}
      </Card>
      <Machine />
    </div>
  );
}

/** Machine examines what sandboxes need of the gateway's machine. */
function Machine() {
  const doctor = useResource<Doctor>("/api/v1/doctor");
  return (
    <Card title="This machine" extra={<button type="button" onClick={doctor.reload}>Examine again</button>}>
      <Loaded of={doctor}>{(data) => (
        <table class="plain">
          <thead><tr><th>Verdict</th><th>What</th><th>Found</th></tr></thead>
          <tbody>{[...data.checks].sort((a, b) => weight(a.status) - weight(b.status)).map((check) => (
            <tr key={check.name}><td><State is={check.status} /></td><td>{printable(check.name, 100)}</td><td>{printable(check.detail, 1000)}{check.fix && <p class="fix"><code>{printable(check.fix, 600)}</code></p>}</td></tr>
          ))}</tbody>
        </table>
      )}</Loaded>
    </Card>
  );
}

function weight(status: string): number {
  return ["failed", "warning", "ok"].indexOf(status);
}
