// Package sdktest holds the tests that run real programs from npm, unmodified,
// in sandboxes without a network, with Atoll between them and a scripted LiteLLM:
// the SDKs of OpenAI and Anthropic, as scripts/sdks.sh installed them, and
// OpenClaw.
package sdktest
