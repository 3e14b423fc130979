// The Anthropic SDK at work. Each check that is named on the command line prints
// a line of JSON: what it returns, and how many requests the SDK made for it.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import Anthropic from '@anthropic-ai/sdk';

let requests = 0;
const counted = (...args) => (requests++, fetch(...args));
const client = new Anthropic({ fetch: counted });
const say = (text) => [{ role: 'user', content: text }];
const tools = [{ name: 'run', input_schema: { type: 'object', properties: { command: { type: 'string' } } } }];
const run = ({ command }) => execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8' });

// told is what the SDK makes of an error.
const told = (e) => ({ class: e.constructor.name, status: e.status, type: e.error?.error?.type });
const failing = async (work) => { try { return { unexpected: await work() }; } catch (e) { return told(e); } };

const ask = (model, more = {}) => ({ model, max_tokens: 100, messages: say('hello'), ...more });
const words = (message) => message.content.filter((b) => b.type === 'text').map((b) => b.text).join('');

// conversation carries out what the model calls until it only talks.
async function conversation(answer) {
  const messages = say('work');
  for (let turns = 1; ; turns++) {
    const message = await answer(messages);
    const calls = message.content.filter((b) => b.type === 'tool_use');
    if (!calls.length) return { text: words(message), turns, stop: message.stop_reason };
    messages.push({ role: 'assistant', content: message.content });
    messages.push({ role: 'user', content: calls.map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: run(c.input) })) });
  }
}

const checks = {
  async whole() {
    const m = await client.messages.create(ask('words'));
    return { text: words(m), usage: m.usage.output_tokens };
  },
  async stream() {
    const m = await client.messages.stream(ask('words')).finalMessage();
    return { text: words(m), usage: m.usage.output_tokens };
  },
  async counting() { return (await client.messages.countTokens({ model: 'words', messages: say('hello') })).input_tokens > 0; },
  tools: () => conversation((messages) => client.messages.create(ask('worker', { messages, tools }))),
  streamedTools: () => conversation((messages) => client.messages.stream(ask('worker', { messages, tools })).finalMessage()),
  // What the upstream fails with is passed on, and the SDK tries again.
  async retried() { return words(await client.messages.create(ask('unsteady'))); },
  // A stream that the upstream breaks off is an error, and can be asked for again.
  async broken() {
    const once = () => client.messages.stream(ask('breaking')).finalMessage();
    const first = await failing(once);
    return { first, then: words(await once()) };
  },
  // A stream whose wire breaks is an error; the same request again gets the answer.
  async again() {
    const once = () => client.messages.stream(ask('held')).on('text', () => writeFileSync('begun', '')).finalMessage();
    const failed = await once().then(() => false, () => true);
    return { failed, text: words(await once()) };
  },
  denied: () => failing(() => client.messages.create(ask('forbidden'))),
  hosted: () => failing(() => client.messages.create(ask('words', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }))),
  // What a budget does: nothing is tried again.
  spent: () => failing(() => client.messages.create(ask('words'))),
  streamSpent: () => failing(() => client.messages.stream(ask('words')).finalMessage()),
};

for (const name of process.argv.slice(2)) {
  requests = 0;
  let result;
  try { result = await checks[name](); } catch (e) { result = { failed: String(e), ...told(e) }; }
  console.log(JSON.stringify({ name, result, requests }));
}
