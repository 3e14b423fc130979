package policy_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

func TestParseSession(t *testing.T) {
	plain := policy.Sessions{}
	custom := policy.Sessions{DefaultAgent: "Work", MainKey: " Home "}
	global := policy.Sessions{Global: true}
	for name, tc := range map[string]struct {
		sessions   policy.Sessions
		key        string
		agent, own string
		main       bool
	}{
		"agent and main":          {plain, "agent:main:main", "main", "agent:main:main", true},
		"bare main":               {plain, "main", "main", "agent:main:main", true},
		"empty":                   {plain, "  ", "main", "agent:main:main", true},
		"bare word":               {plain, "work", "main", "agent:main:work", false},
		"another agent":           {plain, "agent:Work:x:y", "work", "agent:work:x:y", false},
		"id to normalise":         {plain, "agent: My Agent! :x", "my-agent", "agent:my-agent:x", false},
		"case of the rest stays":  {plain, "agent:main:ABC", "main", "agent:main:ABC", false},
		"capital Main":            {plain, "Main", "main", "agent:main:Main", false},
		"other key with colon":    {plain, "telegram:42", "main", "telegram:42", false},
		"configured main key":     {custom, "home", "work", "agent:work:home", true},
		"main is still an alias":  {custom, "main", "work", "agent:work:home", true},
		"main of another agent":   {custom, "agent:dev:main", "dev", "agent:dev:home", true},
		"custom main of another":  {custom, "agent:dev:home", "dev", "agent:dev:home", true},
		"global":                  {global, "global", "main", "global", true},
		"global by alias":         {global, "agent:dev:main", "dev", "global", true},
		"global not configured":   {plain, "global", "main", "agent:main:global", false},
		"no rest":                 {plain, "agent:work", "main", "agent:main:agent:work", false},
		"empty rest":              {plain, "agent:work:", "main", "agent:main:agent:work:", false},
		"no id":                   {plain, "agent::main", "main", "agent:main:agent::main", false},
		"pretends an account":     {plain, "account:a:agent:main", "main", "agent:main:account:a:agent:main", false},
		"control characters":      {plain, "agent:main:a\x1b[2J", "main", "agent:main:a\x1b[2J", false},
		"id of control character": {plain, "agent:\x01:x", "main", "agent:main:x", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.sessions.Parse(tc.key)
			if got.AgentID != tc.agent || got.Key != tc.own || got.Main != tc.main {
				t.Errorf("got agent %q key %q main %v, want %q %q %v", got.AgentID, got.Key, got.Main, tc.agent, tc.own, tc.main)
			}
			if got.Main != (got.Key == got.MainKey) {
				t.Errorf("main %v, but key %q and main key %q", got.Main, got.Key, got.MainKey)
			}
			if again := tc.sessions.Parse(got.Key); again.Key != got.Key {
				t.Errorf("the canonical key %q becomes %q", got.Key, again.Key)
			}
		})
	}
}

func TestNormalizeAgentID(t *testing.T) {
	for in, want := range map[string]string{
		"main": "main", "MAIN": "main", "": "main", "  ": "main", "日本": "main", "---": "main",
		"a b": "a-b", "-a-": "a", "a_b-c9": "a_b-c9", "_x": "_x", "İ": "i",
		strings.Repeat("x", 300):        strings.Repeat("x", 64),
		strings.Repeat("x", 63) + " yz": strings.Repeat("x", 63),
	} {
		if got := policy.NormalizeAgentID(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSandboxed(t *testing.T) {
	for _, tc := range []struct {
		name string
		mode config.Mode
		key  string
		want bool
	}{
		{"V49 main", config.ModeNonMain, "agent:main:main", false},
		{"V49 other", config.ModeNonMain, "agent:main:telegram:default:direct:42", true},
		{"off", config.ModeOff, "agent:main:x", false},
		{"all", config.ModeAll, "agent:main:main", true},
		{"all without a key", config.ModeAll, "", true},
		{"unknown mode", "sometimes", "main", true},
		{"no mode", "", "main", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, reason := policy.Sandboxed(tc.mode, policy.Sessions{}.Parse(tc.key))
			if got != tc.want || reason == "" {
				t.Errorf("got %v (%s), want %v", got, reason, tc.want)
			}
		})
	}
}

func TestScopeKey(t *testing.T) {
	work := policy.Sessions{}.Parse("agent:work:chat:7")
	shared := policy.Sessions{Global: true}.Parse("agent:work:main")
	for name, tc := range map[string]struct {
		scope   config.Scope
		session policy.SessionKey
		account string
		want    string
	}{
		"shared":               {config.ScopeShared, work, "", "shared"},
		"agent":                {config.ScopeAgent, work, "", "agent:work"},
		"session":              {config.ScopeSession, work, "", "agent:work:chat:7"},
		"unknown is narrowest": {"team", work, "", "agent:work:chat:7"},
		"global by agent":      {config.ScopeSession, shared, "", "agent:work:main"},
		"shared with account":  {config.ScopeShared, work, "acme", "account:acme:shared"},
		"agent with account":   {config.ScopeAgent, work, "acme", "account:acme:agent:work"},
		"session with account": {config.ScopeSession, work, "acme", "account:acme:agent:work:chat:7"},
		"account with colons":  {config.ScopeAgent, work, "a:b%3A", "account:a%3Ab%253A:agent:work"},
	} {
		t.Run(name, func(t *testing.T) {
			got := policy.ScopeKey(tc.scope, tc.session, tc.account)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if account, _ := policy.ScopeAccount(got); account != tc.account {
				t.Errorf("account read back as %q", account)
			}
			if has := policy.ScopeHasAgent(got, "WORK"); has != (tc.scope != config.ScopeShared) {
				t.Errorf("belongs to its agent: %v", has)
			}
			if policy.ScopeHasAgent(got, "wor") {
				t.Error("belongs to an agent with a similar name")
			}
		})
	}
}

// Whatever a session key says, in scope "session" it never names the sandbox of
// another agent, of an account, or the shared one.
func FuzzScopeKeyStaysInItsAgent(f *testing.F) {
	for _, seed := range []string{"agent:work", "shared", "account:a:shared", "agent:work:x", "main", "agent:work:", " agent:work "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		session := policy.Sessions{}.Parse(key)
		scopeKey := policy.ScopeKey(config.ScopeSession, session, "")
		if scopeKey == "shared" || strings.HasPrefix(scopeKey, "account:") {
			t.Fatalf("%q has the scope key %q", key, scopeKey)
		}
		if strings.HasPrefix(scopeKey, "agent:") && !policy.ScopeHasAgent(scopeKey, session.AgentID) {
			t.Fatalf("%q of agent %q has the scope key %q", key, session.AgentID, scopeKey)
		}
		if scopeKey == "agent:"+session.AgentID {
			t.Fatalf("%q has the scope key of its whole agent", key)
		}
	})
}
