// The OpenAI SDK at work. Each check that is named on the command line prints a
// line of JSON: what it returns, and how many requests the SDK made for it.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import OpenAI from 'openai';

let requests = 0;
const counted = (...args) => (requests++, fetch(...args));
const client = new OpenAI({ fetch: counted });
const say = (text) => [{ role: 'user', content: text }];
const tools = [{ type: 'function', function: { name: 'run', parameters: { type: 'object', properties: { command: { type: 'string' } } } } }];
const run = ({ command }) => execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8' });

// told is what the SDK makes of an error.
const told = (e) => ({ class: e.constructor.name, status: e.status, code: e.code });
const failing = async (work) => { try { return { unexpected: await work() }; } catch (e) { return told(e); } };

// joined reads a stream; usage is what its chunks tell.
async function joined(stream) {
  const out = { text: '', calls: [], usage: null };
  for await (const chunk of stream) {
    if (chunk.usage) out.usage = chunk.usage.total_tokens;
    const delta = chunk.choices[0]?.delta ?? {};
    out.text += delta.content ?? '';
    for (const part of delta.tool_calls ?? []) {
      const call = (out.calls[part.index] ??= { id: part.id, name: part.function.name, arguments: '' });
      call.arguments += part.function.arguments ?? '';
    }
  }
  return out;
}

// conversation carries out what the model calls until it only talks.
async function conversation(answer) {
  const messages = say('work');
  for (let turns = 1; ; turns++) {
    const { text, calls } = await answer(messages);
    if (!calls.length) return { text, turns };
    messages.push({ role: 'assistant', content: text, tool_calls: calls.map((c) => ({ id: c.id, type: 'function', function: { name: c.name, arguments: c.arguments } })) });
    for (const c of calls) messages.push({ role: 'tool', tool_call_id: c.id, content: run(JSON.parse(c.arguments)) });
  }
}

const chat = (model, more = {}) => client.chat.completions.create({ model, messages: say('hello'), max_completion_tokens: 100, ...more });

const checks = {
  async whole() {
    const a = await chat('words');
    return { text: a.choices[0].message.content, usage: a.usage.completion_tokens };
  },
  async stream() {
    const { text, usage } = await joined(await chat('words', { stream: true }));
    return { text, usage };
  },
  async counted() {
    const { text, usage } = await joined(await chat('words', { stream: true, stream_options: { include_usage: true } }));
    return { text, usage: usage > 0 };
  },
  tools: () => conversation(async (messages) => {
    const { message } = (await chat('worker', { messages, tools })).choices[0];
    return { text: message.content, calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, ...c.function })) };
  }),
  streamedTools: () => conversation(async (messages) => joined(await chat('worker', { messages, tools, stream: true }))),
  async responses() {
    const a = await client.responses.create({ model: 'words', input: 'hello', store: false });
    return { text: a.output_text, usage: a.usage.output_tokens };
  },
  async streamedResponses() {
    let text = '', usage = 0;
    for await (const event of await client.responses.create({ model: 'words', input: 'hello', stream: true, store: false })) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      if (event.type === 'response.completed') usage = event.response.usage.output_tokens;
    }
    return { text, usage };
  },
  async models() {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    return ids.sort();
  },
  // What the upstream fails with is passed on, and the SDK tries again.
  async retried() { return (await chat('unsteady')).choices[0].message.content; },
  // A stream that the upstream breaks off is an error, and can be asked for again.
  async broken() {
    const first = await failing(async () => joined(await chat('breaking', { stream: true })));
    return { first, then: (await joined(await chat('breaking', { stream: true }))).text };
  },
  // A stream whose wire breaks is an error; the same request again gets the answer.
  async again() {
    const request = { model: 'held', messages: say('hello'), max_completion_tokens: 100, stream: true };
    const failed = await client.chat.completions.create(request).then(async (stream) => {
      for await (const chunk of stream) if (chunk.choices[0]?.delta?.content) writeFileSync('begun', '');
      return false;
    }).catch(() => true);
    return { failed, text: (await joined(await client.chat.completions.create(request))).text };
  },
  denied: () => failing(() => chat('forbidden')),
  hosted: () => failing(() => client.responses.create({ model: 'words', input: 'hello', tools: [{ type: 'web_search' }] })),
  // What a budget does: nothing is tried again.
  spent: () => failing(() => chat('words')),
  streamSpent: () => failing(async () => joined(await chat('words', { stream: true }))),
};

for (const name of process.argv.slice(2)) {
  requests = 0;
  let result;
  try { result = await checks[name](); } catch (e) { result = { failed: String(e), ...told(e) }; }
  console.log(JSON.stringify({ name, result, requests }));
}
