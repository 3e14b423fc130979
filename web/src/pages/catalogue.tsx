import type { Agents, Images, Models, Templates, Variant, Variants } from "../api-types";
import { bytes, count, duration, printable } from "../parts/format";
import { Ago, Card, Empty, Loaded, State } from "../parts/parts";
import { useResource } from "../resource";
import { link } from "../router";

/** CataloguePage lists the agents that runs can be given to, the models and the templates, as the gateway has them. */
export function CataloguePage() {
  const agents = useResource<Agents>("/api/v1/ai/agents", 300000);
  const variants = useResource<Variants>("/api/v1/variants", 300000);
  const of = (id: string): Variant | undefined => variants.data?.variants.find((variant) => variant.id === id);
  return (
    <div class="page">
      <Loaded of={agents}>{(data) => data.agents.length === 0 ? <Empty command="atoll config show">No agents are configured.</Empty> : (
        <div class="grid">{data.agents.map((agent) => (
          <section class="card agent" key={agent.graphId}><header><h2>{printable(agent.name, 100)}</h2><State is={agent.unavailable ? "refused" : "ready"} /></header>
            {agent.description && <p>{printable(agent.description, 600)}</p>}
            <Facts variant={of(agent.graphId)} />
            {agent.unavailable && <p class="hint">{printable(agent.unavailable, 600)}</p>}
            <footer><code>{agent.graphId}</code><a href={link("runs", "", { agent: agent.graphId })}>its runs</a></footer>
          </section>
        ))}</div>
      )}</Loaded>
      <ModelsCard />
      <ImagesCard />
      <TemplatesCard />
    </div>
  );
}

function Facts({ variant }: { variant: Variant | undefined }) {
  if (variant === undefined) return null;
  return (
    <dl class="facts">
      <div><dt>Works</dt><dd>{variant.remote ? "at another service" : "in a sandbox"}</dd></div>
      <div><dt>Image</dt><dd>{variant.image ?? "the default"}</dd></div>
      <div><dt>Memory</dt><dd>{bytes(variant.memory)}</dd></div>
      <div><dt>Time</dt><dd>{duration(variant.timeoutSeconds * 1000)}</dd></div>
    </dl>
  );
}

function ModelsCard() {
  const models = useResource<Models>("/api/v1/models", 300000);
  return (
    <Card title="Models">
      <Loaded of={models}>{(data) => data.models.length === 0 ? <Empty command="atoll models">No models are configured.</Empty> : (
        <table class="plain"><thead><tr><th>Model</th><th>Provider</th><th class="right">Context</th><th>Thinks</th></tr></thead>
          <tbody>{data.models.slice(0, 300).map((model) => <tr key={model.id}><td>{printable(model.name, 120)}</td><td>{printable(model.provider, 80)}</td><td class="right">{model.contextWindow ? count(model.contextWindow) : "–"}</td><td>{model.reasoning ? "yes" : "–"}</td></tr>)}</tbody></table>
      )}</Loaded>
    </Card>
  );
}

function ImagesCard() {
  const images = useResource<Images>("/api/v1/images", 60000);
  return (
    <Card title="Images">
      <Loaded of={images}>{(data) => data.images.length === 0 ? <Empty command="atoll images pull NAME">No image was pulled; sandboxes are made of this machine's own programs.</Empty> : (
        <table class="plain"><thead><tr><th>Image</th><th>From</th><th class="right">Size</th><th class="right">Files</th><th class="right">Sandboxes</th><th class="right">Added</th></tr></thead>
          <tbody>{data.images.map((image) => <tr key={image.id}><td>{printable(image.names.join(", ") || image.id, 200)}{image.problem && <p class="bad">{printable(image.problem, 300)}</p>}</td><td>{printable(image.source, 200)}</td><td class="right">{bytes(image.size)}</td><td class="right">{count(image.files)}</td><td class="right">{count(image.usedBy)}</td><td class="right"><Ago at={image.added} /></td></tr>)}</tbody></table>
      )}</Loaded>
    </Card>
  );
}

function TemplatesCard() {
  const templates = useResource<Templates>("/api/v1/templates", 60000);
  return (
    <Card title="Templates">
      <Loaded of={templates}>{(data) => data.templates.length === 0 ? <Empty>No sandbox was kept as a template.</Empty> : (
        <table class="plain"><thead><tr><th>Template</th><th>Image</th><th class="right">Made</th></tr></thead>
          <tbody>{data.templates.map((template) => <tr key={template.name}><td>{template.name}</td><td>{template.image ?? "the default"}</td><td class="right"><Ago at={template.created} /></td></tr>)}</tbody></table>
      )}</Loaded>
    </Card>
  );
}
