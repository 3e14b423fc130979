package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

func list(names ...string) []string { return append([]string{}, names...) }

func TestToolPolicyVectors(t *testing.T) {
	type source = policy.ListSource
	agentAllow := source{Source: "agent", Key: "agents.list[1].tools.sandbox.tools.allow"}
	globalDeny := source{Source: "global", Key: "tools.sandbox.tools.deny"}

	// V43 and V44 were recorded with the February version, which appends the
	// tool "image"; the September version, whose tool policy Atoll follows,
	// appends "view_image".
	t.Run("V43", func(t *testing.T) {
		p := policy.ResolveTools(config.ToolLists{
			Global: config.ToolList{Allow: list("read"), Deny: list("browser")},
			Agent:  config.ToolList{Allow: list("write")},
		}, "agents.list[1]")
		want := policy.ToolSources{Allow: agentAllow, Deny: globalDeny}
		checkLists(t, p, list("write", "view_image"), list("browser"))
		if diff := cmp.Diff(want, p.Sources); diff != "" {
			t.Error(diff)
		}
	})
	// In the September version group:fs begins with ls.
	t.Run("V44", func(t *testing.T) {
		p := policy.ResolveTools(config.ToolLists{
			Global: config.ToolList{Deny: list()},
			Agent:  config.ToolList{Allow: list("group:memory", "group:fs")},
		}, "")
		checkLists(t, p, list("memory_search", "memory_get", "ls", "read", "write", "edit", "apply_patch", "view_image"), nil)
		if p.Sources.Allow.Key != "agents.entries.*.tools.sandbox.tools.allow" {
			t.Errorf("key %q", p.Sources.Allow.Key)
		}
	})
	t.Run("V45", func(t *testing.T) {
		p := policy.ResolveTools(config.ToolLists{Global: config.ToolList{Allow: list("browser")}}, "")
		checkDecisions(t, p, map[string]bool{"browser": true, "canvas": false, "read": false, "view_image": true})
		if slices.Contains(p.Deny, "browser") || !slices.Contains(p.Deny, "canvas") || p.Sources.Deny.Source != "default" {
			t.Errorf("deny %q from %v", p.Deny, p.Sources.Deny)
		}
	})
	t.Run("V46", func(t *testing.T) {
		p := policy.ResolveTools(config.ToolLists{Global: config.ToolList{Allow: list(), AlsoAllow: list("browser")}}, "")
		if len(p.Allow) != 0 {
			t.Errorf("allow %q", p.Allow)
		}
		checkDecisions(t, p, map[string]bool{"read": true, "browser": true, "anything": true, "canvas": false})
	})
}

func checkLists(t *testing.T, p policy.ToolPolicy, allow, deny []string) {
	t.Helper()
	if diff := cmp.Diff(allow, p.Allow); diff != "" {
		t.Error("allow", diff)
	}
	if !slices.Equal(deny, p.Deny) {
		t.Errorf("deny %q, want %q", p.Deny, deny)
	}
}

func checkDecisions(t *testing.T, p policy.ToolPolicy, want map[string]bool) {
	t.Helper()
	for tool, allowed := range want {
		d := p.Decide(tool)
		if d.Allowed != allowed {
			t.Errorf("%s: allowed %v (%s), want %v", tool, d.Allowed, d.Reason, allowed)
		}
		if !d.Allowed && tool != "" && len(d.Fix) == 0 {
			t.Errorf("%s: blocked without a fix", tool)
		}
	}
}

func TestToolPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		lists config.ToolLists
		want  map[string]bool
	}{
		"defaults": {config.ToolLists{}, map[string]bool{
			"exec": true, "BASH": true, " read ": true, "apply-patch": true, "view_image": true, "ls": true,
			"browser": false, "cron": false, "telegram": false, "web_fetch": false, "memory_get": false, "": false,
		}},
		"deny wins": {config.ToolLists{Global: config.ToolList{Allow: list("*"), Deny: list("group:runtime")}}, map[string]bool{
			"read": true, "exec": false, "bash": false, "browser": true,
		}},
		"a configured deny list gives way to nothing": {config.ToolLists{Global: config.ToolList{Allow: list("browser"), Deny: list("b*")}},
			map[string]bool{"browser": false}},
		"agent beats global list by list": {config.ToolLists{
			Global: config.ToolList{Allow: list("read"), Deny: list("exec")}, Agent: config.ToolList{Deny: list()},
		}, map[string]bool{"read": true, "exec": false}},
		"alsoAllow adds to the defaults": {config.ToolLists{Agent: config.ToolList{AlsoAllow: list("web_*")}},
			map[string]bool{"exec": true, "web_fetch": true, "browser": false}},
		"agent alsoAllow adds to the global list": {config.ToolLists{
			Global: config.ToolList{Allow: list("read")}, Agent: config.ToolList{AlsoAllow: list("tts")},
		}, map[string]bool{"read": true, "tts": true, "exec": false}},
		"image denied by its older name": {config.ToolLists{Global: config.ToolList{Deny: list("image")}},
			map[string]bool{"view_image": false, "read": true}},
		"view_image denied": {config.ToolLists{Global: config.ToolList{Allow: list("read"), Deny: list("view_*")}},
			map[string]bool{"view_image": false, "read": true}},
		"blank entries say nothing": {config.ToolLists{Global: config.ToolList{Allow: list("", "  "), Deny: list(" ")}},
			map[string]bool{"anything": true}},
		"unknown group is a name": {config.ToolLists{Global: config.ToolList{Allow: list("group:plugins")}},
			map[string]bool{"group:plugins": true, "exec": false}},
		"group of everything else": {config.ToolLists{Global: config.ToolList{Allow: list("group:openclaw")}},
			map[string]bool{"web_fetch": true, "exec": false, "read": false, "canvas": false, "browser": true}},
	} {
		t.Run(name, func(t *testing.T) { checkDecisions(t, policy.ResolveTools(tc.lists, ""), tc.want) })
	}
}

func TestToolGlobs(t *testing.T) {
	for _, tc := range []struct {
		pattern, tool string
		want          bool
	}{
		{"*", "x", true}, {"web_*", "web_fetch", true}, {"*fetch", "web_fetch", true}, {"w*b*h", "web_fetch", true},
		{"web_*", "web", false}, {"a*a", "a", false}, {"a*b*c", "acb", false}, {"**", "x", true},
		{"server__*", "server__a/b_c", true}, {"a.c", "abc", false}, {"a?", "ab", false}, {"[a]", "a", false}, {"*a*b", "xaxbxb", true},
	} {
		p := policy.ResolveTools(config.ToolLists{Global: config.ToolList{Allow: list(tc.pattern), Deny: list()}}, "")
		if got := p.Decide(tc.tool).Allowed; got != tc.want {
			t.Errorf("%q on %q: %v", tc.pattern, tc.tool, got)
		}
	}
	// A matcher that tries every way through the stars would never end here.
	hostile := policy.ResolveTools(config.ToolLists{Global: config.ToolList{Allow: list(strings.Repeat("*a", 5000) + "b")}}, "")
	if hostile.Decide(strings.Repeat("a", 100_000)).Allowed {
		t.Error("a pattern that ends in b matches a name of only a")
	}
}

func TestDecisionNamesRuleAndFix(t *testing.T) {
	p := policy.ResolveTools(config.ToolLists{
		Global: config.ToolList{Allow: list("read", "group:web"), Deny: list("WEB_*")},
	}, "")
	for tool, want := range map[string]policy.Decision{
		"web_fetch": {Reason: "deny list", Rule: "web_*", Source: "tools.sandbox.tools.deny",
			Fix: list(`Remove "web_*", which matches "web_fetch", from tools.sandbox.tools.deny.`)},
		"web_other": {Reason: "deny list + allow list", Rule: "web_*", Source: "tools.sandbox.tools.deny",
			Fix: list(`Remove "web_*", which matches "web_other", from tools.sandbox.tools.deny.`,
				`Add "web_other" to tools.sandbox.tools.allow (or set it to [] to allow all).`)},
		"exec": {Reason: "allow list", Source: "tools.sandbox.tools.allow",
			Fix: list(`Add "exec" to tools.sandbox.tools.allow (or set it to [] to allow all).`)},
		"x_search": {Allowed: true, Reason: "allow list", Rule: "group:web", Source: "tools.sandbox.tools.allow"},
	} {
		if diff := cmp.Diff(want, p.Decide(tool)); diff != "" {
			t.Error(tool, diff)
		}
	}
	defaults := policy.ResolveTools(config.ToolLists{}, "")
	if diff := cmp.Diff(list(`Add "browser" to tools.sandbox.tools.alsoAllow.`), defaults.Decide("browser").Fix); diff != "" {
		t.Error("browser", diff)
	}
	allowed := policy.ResolveTools(config.ToolLists{Global: config.ToolList{AlsoAllow: list("browser")}}, "")
	if !allowed.Decide("browser").Allowed {
		t.Error("the fix that was offered for browser does not help")
	}
}

func TestBlockedMessage(t *testing.T) {
	p := policy.ResolveTools(config.ToolLists{Global: config.ToolList{Deny: list("WEB_*")}}, "")
	message := func(mode config.Mode, key string) string {
		session := policy.Sessions{}.Parse(key)
		return policy.Blocked{Tool: "web_fetch", Mode: mode, Session: session, Decision: p.Decide("web_fetch")}.Message()
	}
	t.Run("V47", func(t *testing.T) {
		want := strings.Join([]string{
			`Tool "web_fetch" blocked by sandbox tool policy (mode=all).`,
			`Session: agent:… -rf /`,
			`Reason: deny list + allow list`,
			`Fix:`,
			`- agents.defaults.sandbox.mode=off (disable sandbox)`,
			`- Remove "web_*", which matches "web_fetch", from tools.sandbox.tools.deny.`,
			`- Add "web_fetch" to tools.sandbox.tools.alsoAllow.`,
			`- See: atoll sandbox explain --agent main --session 'agent:main:weird session;rm -rf /' --tool web_fetch`,
		}, "\n")
		if diff := cmp.Diff(want, message(config.ModeAll, "agent:main:weird session;rm -rf /")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("V48", func(t *testing.T) {
		got := message(config.ModeAll, "agent:main:abcde\n12345")
		if !strings.Contains(got, `Session: agent:…\n12345`+"\n") || strings.Contains(got, "--session") {
			t.Error(got)
		}
	})
	t.Run("non-main", func(t *testing.T) {
		got := message(config.ModeNonMain, "agent:main:it's")
		for _, want := range []string{"- Use main session key (direct): agent:main:main", `--session 'agent:main:it'\''s'`} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
	})
	t.Run("terminal tricks", func(t *testing.T) {
		got := message(config.ModeAll, "agent:main:\x1b]0;x\x07\u202eabc")
		if strings.ContainsAny(got, "\x1b\x07\u202e") {
			t.Errorf("control characters reach the reader: %q", got)
		}
	})
	t.Run("short key", func(t *testing.T) {
		if got := message(config.ModeAll, "x:y"); !strings.Contains(got, "Session: (redacted)\n") {
			t.Error(got)
		}
	})
}
