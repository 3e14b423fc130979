// Package openclaw writes the configuration with which the real OpenClaw runs
// inside a sandbox: its own sandbox, clock, elevated tools and providers are
// off, and its only model provider is the proxy. It also reads the catalogues of
// models that such a configuration lists.
package openclaw
