package run

// Preset is what is known of a program that many use; false if nothing is. Models
// are asked through the proxy, with a placeholder for the key.
func Preset(name string) (Custom, bool) {
	switch name {
	case "claude-code":
		return claudeCode(), true
	case "codex":
		return codex(), true
	}
	return Custom{}, false
}

func claudeCode() Custom {
	return Custom{
		Name: "Claude Code", Description: "Anthropic's Claude Code in a sandbox of its own, for one task",
		// No person could answer its prompts; the sandbox confines it.
		Argv: []string{"claude", "--print", "--output-format", "stream-json", "--verbose", "--model", "{model}", "--dangerously-skip-permissions", "{task}"},
		Env: map[string]string{
			"ANTHROPIC_BASE_URL": "{base-url}", "ANTHROPIC_API_KEY": noKey, "ANTHROPIC_SMALL_FAST_MODEL": "{model}",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1",
			"CLAUDE_CONFIG_DIR": "{workspace}/.claude-state",
		},
		Read: "json", Answer: "result", Failure: "is_error", Stream: claudeStream,
	}
}

func codex() Custom {
	return Custom{
		Name: "Codex", Description: "OpenAI's Codex in a sandbox of its own, for one task",
		Argv: []string{"codex", "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", "{model}", "{task}"},
		Env:  map[string]string{"CODEX_HOME": "{workspace}/.codex", "ATOLL_NO_KEY": noKey},
		// The provider may not search for a sandbox without a network, and the proxy
		// refuses requests that ask for it.
		Files: map[string]string{".codex/config.toml": `model_provider = "proxy"
web_search = "disabled"
[model_providers.proxy]
name = "proxy"
base_url = "{base-url}/v1"
wire_api = "responses"
env_key = "ATOLL_NO_KEY"
supports_websockets = false
`},
		Read: "codex", Stream: codexStream,
	}
}
