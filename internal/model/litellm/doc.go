// Package litellm is a client of a LiteLLM proxy's accounting: spend logs, the
// prices of models, and virtual keys. It never carries a prompt. Everything that comes back is bounded, and no error
// quotes the key.
package litellm
