package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/policy"
)

type env = map[string]string

// blockedNames lists what did not enter.
func blockedNames(e policy.Env) []string {
	var names []string
	for _, b := range e.Blocked {
		names = append(names, b.Name)
	}
	return names
}

func TestSanitizeEnvVectors(t *testing.T) {
	encoded := strings.Repeat("aB3/", 20)
	for _, tc := range []struct {
		name    string
		in      policy.EnvRequest
		passed  env
		blocked []string
		warns   []string
	}{
		{"V32", policy.EnvRequest{Inherited: env{"NODE_ENV": "t", "OPENAI_API_KEY": "k", "FOO": "1", "GITHUB_TOKEN": "g"}},
			env{"NODE_ENV": "t", "FOO": "1"}, []string{"GITHUB_TOKEN", "OPENAI_API_KEY"}, nil},
		{"V33", policy.EnvRequest{Configured: env{"MY_TOKEN": "a", "MY_SECRET": "b", "USER": "u"}},
			env{"USER": "u"}, []string{"MY_SECRET", "MY_TOKEN"}, nil},
		{"V34 base64", policy.EnvRequest{Configured: env{"BLOB": encoded}},
			env{"BLOB": encoded}, nil, []string{"BLOB: Value looks like base64-encoded credential data"}},
		{"V34 NUL", policy.EnvRequest{Configured: env{"BAD": "a\x00b"}}, env{}, []string{"BAD"}, nil},
		{"V35", policy.EnvRequest{Configured: env{"NODE_ENV": "t", "FOO": "1"}, Strict: true},
			env{"NODE_ENV": "t"}, []string{"FOO"}, nil},
		{"79 characters are no blob", policy.EnvRequest{Call: env{"X": encoded[:79]}}, env{"X": encoded[:79]}, nil, nil},
		{"long value", policy.EnvRequest{Call: env{"X": strings.Repeat("-", 32769)}},
			env{"X": strings.Repeat("-", 32769)}, nil, []string{"X: Value exceeds maximum length"}},
		{"just not long", policy.EnvRequest{Call: env{"X": strings.Repeat("-", 32768)}},
			env{"X": strings.Repeat("-", 32768)}, nil, nil},
		{"longest that a process takes", policy.EnvRequest{Call: env{"X": strings.Repeat("-", 131069)}},
			env{"X": strings.Repeat("-", 131069)}, nil, []string{"X: Value exceeds maximum length"}},
		{"too long for a process", policy.EnvRequest{Call: env{"X": strings.Repeat("-", 131070)}}, env{}, []string{"X"}, nil},
		{"configured secret that was allowed", policy.EnvRequest{Configured: env{"MY_TOKEN": "a"}, AllowSecret: []string{"MY_TOKEN"}},
			env{"MY_TOKEN": "a"}, nil, []string{"MY_TOKEN: A secret enters the sandbox (dangerouslyAllowSecretEnv)"}},
		{"allowing one allows no other", policy.EnvRequest{Configured: env{"MY_TOKEN": "a", "MY_SECRET": "b"}, AllowSecret: []string{"MY_TOKEN", "*"}},
			env{"MY_TOKEN": "a"}, []string{"MY_SECRET"}, []string{"MY_TOKEN: A secret enters the sandbox (dangerouslyAllowSecretEnv)"}},
		{"allowed secret with NUL", policy.EnvRequest{Configured: env{"MY_TOKEN": "\x00"}, AllowSecret: []string{"MY_TOKEN"}},
			env{}, []string{"MY_TOKEN"}, nil},
		{"the host's PATH never enters", policy.EnvRequest{Inherited: env{"PATH": "/host", "A": "1"}}, env{"A": "1"}, nil, nil},
		{"a configured PATH does", policy.EnvRequest{Inherited: env{"PATH": "/host"}, Configured: env{"PATH": "/box"}},
			env{"PATH": "/box"}, nil, nil},
		{"later layers win", policy.EnvRequest{Inherited: env{"A": "1", "B": "1", "C": "1"}, Configured: env{"B": "2", "C": "2"}, Call: env{"C": "3"}},
			env{"A": "1", "B": "2", "C": "3"}, nil, nil},
		{"names", policy.EnvRequest{Call: env{"": "x", "A=B": "x", "1A": "x", "A-B": "x", "A B": "x", "ÄB": "x", "A\n": "x", "_ok9": "x"}},
			env{"_ok9": "x"}, []string{"", "1A", "A\n", "A B", "A-B", "A=B", "ÄB"}, nil},
		{"strict", policy.EnvRequest{Configured: env{"LC_ALL": "C", "LCX": "1", "PATH": "/b", "TZ": "UTC"}, Strict: true},
			env{"LC_ALL": "C", "PATH": "/b", "TZ": "UTC"}, []string{"LCX"}, nil},
		{"nothing", policy.EnvRequest{}, env{}, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := policy.SanitizeEnv(tc.in)
			if diff := cmp.Diff(tc.passed, got.Passed); diff != "" {
				t.Error("passed", diff)
			}
			if diff := cmp.Diff(tc.blocked, blockedNames(got)); diff != "" {
				t.Error("blocked", diff)
			}
			if diff := cmp.Diff(tc.warns, got.Warnings); diff != "" {
				t.Error("warnings", diff)
			}
		})
	}
}

// Every name on the original's list is a secret, in any case of its letters.
func TestSecretNames(t *testing.T) {
	for name := range strings.FieldsSeq(`ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY OPENROUTER_API_KEY
		MINIMAX_API_KEY ELEVENLABS_API_KEY SYNTHETIC_API_KEY TELEGRAM_BOT_TOKEN DISCORD_BOT_TOKEN SLACK_BOT_TOKEN
		SLACK_APP_TOKEN LINE_CHANNEL_SECRET LINE_CHANNEL_ACCESS_TOKEN OPENCLAW_GATEWAY_TOKEN OPENCLAW_GATEWAY_PASSWORD
		AWS_SECRET_ACCESS_KEY AWS_SECRET_KEY AWS_SESSION_TOKEN GH_TOKEN GITHUB_TOKEN AZURE_API_KEY AZURE_OPENAI_API_KEY
		COHERE_API_KEY AI_GATEWAY_API_KEY X_PRIVATE_KEY PASSWORD TOKEN MYSECRET X_ADMIN_KEY LITELLM_MASTER_KEY openai_api_key Gh_Token`) {
		if got := policy.SanitizeEnv(policy.EnvRequest{Configured: env{name: "v"}}); len(got.Passed) != 0 {
			t.Errorf("%s entered", name)
		}
	}
	for name := range strings.FieldsSeq("LANG TOKENIZER SECRETARY API_KEYS MONKEY AWS_REGION PASSWORDLESS") {
		if got := policy.SanitizeEnv(policy.EnvRequest{Configured: env{name: "v"}}); len(got.Blocked) != 0 {
			t.Errorf("%s was blocked: %s", name, got.Blocked[0].Reason)
		}
	}
}

func TestEnvReportsHoldNoValues(t *testing.T) {
	const value = "hunter2hunter2"
	got := policy.SanitizeEnv(policy.EnvRequest{
		Configured:  env{"A_TOKEN": value, "B_TOKEN": value, "C": value + "\x00"},
		AllowSecret: []string{"B_TOKEN"},
	})
	text := strings.Join(got.Warnings, " ")
	for _, b := range got.Blocked {
		text += b.Name + b.Reason
	}
	if strings.Contains(text, value) {
		t.Errorf("a value is in %q", text)
	}
}
