// Package litellm asks a LiteLLM proxy what it knows of money: spend logs, the
// prices of models, and virtual keys. It never carries a prompt; that is the
// proxy's own business. Everything that comes back is bounded, and no error
// quotes the key.
package litellm
