// Writes src/api.ts: the types of what the gateway's operations on sandboxes and
// templates take and answer, from api/openapi.json. With --check it fails if they differ.
// --all FILE writes those of all operations, events and messages to FILE instead.
import { readFileSync, writeFileSync } from "node:fs";

const source = new URL("../../../api/openapi.json", import.meta.url);
const all = process.argv.includes("--all") ? process.argv[process.argv.indexOf("--all") + 1] : undefined;
const target = all ?? new URL("../src/api.ts", import.meta.url);
const schemas = "#/components/schemas/";
const document = JSON.parse(readFileSync(source, "utf8"));

// namesIn returns the names of the schemas that a value refers to.
function namesIn(value) {
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === "$ref" ? [inner.slice(schemas.length)] : namesIn(inner)));
}

// reachable returns the names of the schemas that the names lead to, sorted.
function reachable(names) {
  const found = new Set();
  for (let left = [...names]; left.length > 0; ) {
    const name = left.pop();
    if (found.has(name)) continue;
    found.add(name);
    left.push(...namesIn(document.components.schemas[name]));
  }
  return [...found].sort();
}

// typeOf returns the type of a schema.
function typeOf(schema) {
  if (schema.$ref) return schema.$ref.slice(schemas.length);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  switch (schema.type) {
    case "integer":
      return "number";
    case "string": case "number": case "boolean": case "null":
      return schema.type;
    case "array":
      return `Array<${typeOf(schema.items)}>`;
    case "object":
      if (schema.additionalProperties) return `Record<string, ${typeOf(schema.additionalProperties)}>`;
      break;
    case undefined:
      return "unknown";
  }
  throw new Error(`a schema without a type: ${JSON.stringify(schema)}`);
}

function interfaceOf(name) {
  const { properties = {}, required = [], description } = document.components.schemas[name];
  const comment = (text, indent) => (text ? `${indent}/** ${text} */\n` : "");
  const members = Object.entries(properties).map(([member, schema]) =>
    `${comment(schema.description, "  ")}  ${/^[A-Za-z_$][\w$]*$/.test(member) ? member : JSON.stringify(member)}${required.includes(member) ? "" : "?"}: ${typeOf(schema)};\n`);
  return `${comment(description, "")}export interface ${name} {\n${members.join("")}}\n`;
}

const paths = Object.entries(document.paths).filter(([path]) => all !== undefined || /^\/api\/v1\/(sandboxes|templates)\b/.test(path));
const extra = ["ExecStart", "ExecOutput", "FileChange"]; // of events, whose schema is text
const names = all === undefined ? reachable([...namesIn(paths), ...extra]) : Object.keys(document.components.schemas).sort();
const text = `// Made from api/openapi.json by scripts/types.mjs: do not edit.\n\n${names.map(interfaceOf).join("\n")}`;
if (!process.argv.includes("--check")) {
  writeFileSync(target, text);
} else if (readFileSync(target, "utf8") !== text) {
  console.error(`${all ?? "src/api.ts"} is not what api/openapi.json says: run npm run types`);
  process.exit(1);
}
