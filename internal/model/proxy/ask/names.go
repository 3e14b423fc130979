package ask

import (
	"bytes"
	"slices"
	"strings"
)

// appendLower appends key in lower case.
func appendLower(dst, key []byte) []byte {
	for _, c := range key {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

// printable returns a name in a form that is safe in a message.
func printable(name []byte) string {
	name = name[:min(len(name), 64)]
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, string(name))
}

// controls steer LiteLLM, or a gateway like it: other keys and addresses, other
// models than the one that was checked, invented prices, callbacks, retries.
var controls = []string{
	"allowed_model_region", "allowed_openai_params", "api_base", "api_key", "api_type", "api_version", "base_model", "base_url", "cache", "cache_key", "caching", "callbacks",
	"client", "config", "configurable_clientside_auth_params", "context_window_fallback_dict", "context_window_fallbacks", "cooldown_time",
	"content_policy_fallbacks", "custom_llm_provider", "deployment_id", "deployment_url", "disable_fallbacks", "disable_global_guardrail",
	"disable_global_guardrails", "disable_global_policies", "drop_params", "additional_drop_params", "enable_json_schema_validation", "engine", "extra_body", "extra_headers", "extra_query",
	"failure_callback", "fallbacks", "fastest_response", "force_timeout", "guardrail_config", "guardrails", "headers", "hf_model_name", "initial_prompt_value",
	"input_callback", "logger_fn", "max_agentic_loops", "max_budget", "max_retries", "merge_reasoning_content_in_choices", "model_config", "model_file_id_mapping", "model_info",
	"model_list", "models", "no-log", "num_retries", "organization", "policies", "preset_cache_key", "project", "prompt_id", "prompt_variables", "provider",
	"provider_specific_header", "proxy_server_request", "region_name", "request_timeout", "retry_policy", "retry_strategy", "roles", "route", "router",
	"rpm", "secret_fields", "service_callback", "shared_session", "spend_logs_metadata", "ssl_verify", "stream_timeout", "success_callback", "supports_system_message",
	"tags", "text_completion", "timeout", "tpm", "transforms", "ttl", "turn_off_message_logging", "use_in_pass_through", "use_litellm_proxy", "user_config", "watsonx_region_name", "webhook_url",
}

// controlPrefixes begin the names of whole families of such fields.
var controlPrefixes = []string{
	"arize_", "aws_", "azure_", "braintrust_", "datadog_", "dd_", "gcs_", "helicone_", "humanloop_", "lago_", "langfuse_", "langsmith_", "litellm",
	"lunary_", "mock_", "newrelic_", "oci_", "opik_", "posthog_", "router_", "s3_", "sagemaker_", "slack_", "vertex_", "wandb_", "watsonx_", "weave_",
}

func isControl(lower []byte) bool {
	return slices.Contains(controls, string(lower)) || bytes.Contains(lower, []byte("cost_per_")) || isFamily(lower)
}

// isMetadataControl is the same for the caller's metadata, where most names have
// no meaning to the gateway.
func isMetadataControl(lower []byte) bool {
	switch string(lower) {
	case "spend_logs_metadata", "tags", "guardrails", "policies", "model_info", "model_group", "headers", "endpoint":
		return true
	}
	return slices.ContainsFunc(identityPrefixes, func(p string) bool { return bytes.HasPrefix(lower, []byte(p)) }) || isFamily(lower)
}

// identityPrefixes begin the names of metadata that a gateway, or what it logs to,
// reads as who called and what the call is part of.
var identityPrefixes = []string{"existing_trace", "generation_", "parent_observation", "requester_", "session_id", "trace_", "update_trace", "user"}

func isFamily(lower []byte) bool {
	return slices.ContainsFunc(controlPrefixes, func(p string) bool { return bytes.HasPrefix(lower, []byte(p)) })
}
