package sdktest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

// agentPrograms are agents as people start them, without a person: where models
// are is told by a base URL, and the key is none.
var agentPrograms = map[string]string{
	"claude": `cd /tmp && /node_modules/.bin/claude -p 'say hello' --model claude-words --output-format json`,
	"codex": `cd /tmp && mkdir -p /tmp/codex && CODEX_HOME=/tmp/codex /node_modules/.bin/codex exec --skip-git-repo-check --json -m claude-words \
		--dangerously-bypass-approvals-and-sandbox -c 'web_search="disabled"' -c model_provider=atoll -c 'model_providers.atoll={name="atoll",base_url="http://localhost:8080/v1",env_key="OPENAI_API_KEY",wire_api="responses",supports_websockets=false}' 'say hello'`,
	"opencode": `mkdir -p /tmp/opencode && cd /tmp/opencode && cat >opencode.json <<'END'
{"provider": {"atoll": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://localhost:8080/v1", "apiKey": "none-needed"}, "models": {"claude-words": {}}}}}
END
/node_modules/.bin/opencode run -m atoll/claude-words 'say hello'`,
	"gemini": `mkdir -p /tmp/gemini /tmp/.gemini && cd /tmp/gemini && echo '{"security":{"auth":{"selectedType":"gemini-api-key"}}}' >/tmp/.gemini/settings.json
SANDBOX=atoll GEMINI_CLI_NO_RELAUNCH=true GEMINI_CLI_TRUST_WORKSPACE=true /node_modules/.bin/gemini -m claude-words -p 'say hello'`,
}

// The agents themselves, each of a hundred megabytes and more, are asked for with
// ATOLL_TEST_AGENTS=1 and scripts/sdks.sh up agents.
func TestAgents(t *testing.T) {
	if os.Getenv("ATOLL_TEST_AGENTS") == "" {
		return
	}
	d := newDesk(t, fixtureOptions{
		backend: "linux", binds: []string{installed(t, "agents") + "/node_modules:/node_modules:ro"},
		models: map[string]litellmtest.Model{"claude-words": {Answer: "all done in here", Input: 1e-06, Output: 1e-05}},
	})
	g := d.grant("agents-1", 0, "claude-words")
	defer g.Close()
	for name, program := range agentPrograms {
		t.Run(name, func(t *testing.T) {
			d := *d
			d.T = t
			before := len(d.upstream.Requests())
			out := d.exec(g, nil, map[string]string{"HOME": "/tmp"}, "/bin/sh", "-c", "PATH=/node_modules/.bin:$PATH; "+program+" 2>&1")
			if !strings.Contains(out, "all done in here") {
				t.Errorf("no answer:\n%s", out)
			}
			for _, r := range d.upstream.Requests()[before:] {
				t.Logf("%s, stream %v, %d bytes", r.Path, r.Stream, len(r.Body))
			}
		})
	}
}
