// Package ask reads what a request to a model asks for, and refuses what it may
// not. It sees a body once, in place, before the first byte goes to the
// upstream, and it never encodes one again: what must be added is an [Edit].
//
// What is refused whatever the policy: documents that two parsers could read
// differently, fields that steer LiteLLM itself (other keys, other addresses,
// invented prices, callbacks, retries), fields that name further models, and
// numbers beyond the limits. What is refused under [Strict], because it would
// let a sandbox without a network have the provider fetch, keep or run
// something for it: addresses other than data:, hosted tools, remote MCP
// servers, stored files and conversations, work in the background.
package ask
