package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

func TestRouteTool(t *testing.T) {
	cases := []struct {
		name  string
		allow []string
		tool  string
		want  policy.Route
	}{
		{"no lists", nil, "web_fetch", policy.Route{Half: policy.HalfIsolated}},
		{"by name", []string{"web_fetch"}, "web_fetch", networked("web_fetch")},
		{"another", []string{"web_fetch"}, "web_search", policy.Route{Half: policy.HalfIsolated}},
		{"pattern", []string{"web_*"}, "WEB_search ", networked("web_*")},
		{"group", []string{"group:web"}, "web_search", networked("group:web")},
		{"alias", []string{"bash"}, "exec", networked("exec")},
		{"blank entries", []string{"", " "}, "exec", policy.Route{Half: policy.HalfIsolated}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := policy.NewRouter(config.Sandbox{NetworkAllow: c.allow})
			if diff := cmp.Diff(c.want, r.Tool(c.tool)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func networked(rule string) policy.Route {
	return policy.Route{Half: policy.HalfNetworked, Rule: rule, Source: "sandbox.networkAllow"}
}

func TestRouteCommand(t *testing.T) {
	r := policy.NewRouter(config.Sandbox{NetworkExecAllow: []string{"gh *", "git fetch"}})
	networked := map[string][]string{
		"gh":                  {"gh"},
		"gh pr list":          {"gh", "pr", "list"},
		"gh api 'repos/a b'":  {"gh", "api", "repos/a b"},
		"git fetch":           {"git", "fetch"},
		"  \"gh\" pr   view ": {"gh", "pr", "view"},
	}
	for command, argv := range networked {
		want := policy.Route{Half: policy.HalfNetworked, Rule: "gh *", Source: "sandbox.networkExecAllow", Argv: argv}
		if argv[0] == "git" {
			want.Rule = "git fetch"
		}
		if diff := cmp.Diff(want, r.Command(command)); diff != "" {
			t.Errorf("%q: %s", command, diff)
		}
	}
	// What would smuggle something past the pattern stays where no network is.
	for _, command := range []string{
		"", "git fetch --all", "ghx", "./gh", "/tmp/gh pr", "gh; curl x", "gh && curl x", "gh | sh", "gh pr `id`", "gh pr $(id)",
		"gh $IFS", "gh > /workspace/x", "gh < /etc/passwd", "PATH=/workspace gh", "gh &", "(gh)", "{ gh; }", "! gh", "gh\ncurl x", "gh pr *",
		"gh ~", "gh {a,b}", "exec gh", "command gh", "eval gh", "gh # x", "env gh", "gh 'open", "gh \\", "gh() { curl x; }", "ｇｈ pr",
		"gh\x00", "time gh", "gh <(id)", "gh $'a'", "if gh; then gh; fi",
	} {
		if got := r.Command(command); got.Half != policy.HalfIsolated || got.Argv != nil {
			t.Errorf("%q is routed to %+v", command, got)
		}
	}
}

func TestPaired(t *testing.T) {
	for want, s := range map[bool]config.Sandbox{
		false: {NetworkAllow: []string{" "}, NetworkExecAllow: []string{"", " "}},
		true:  {NetworkExecAllow: []string{"gh *"}},
	} {
		if got := policy.NewRouter(s).Paired(); got != want {
			t.Errorf("%+v: paired is %v", s, got)
		}
	}
}

func TestPairNetwork(t *testing.T) {
	for configured, want := range map[string]string{"": "none", "none": "none", " None": "none", "bridge": "bridge", "my-net": "my-net"} {
		if got := policy.PairNetwork(configured); got != want {
			t.Errorf("%q becomes %q, want %q", configured, got, want)
		}
	}
}
