package policy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
)

const prefix = "openclaw-sbx-"

var dockerName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

func TestSlugVectors(t *testing.T) {
	for _, tc := range []struct{ name, key, want string }{
		{"V1", "agent:main", "agent-main-f331f052"},
		{"V2", "agent:main:main", "agent-main-main-6d9217fe"},
		{"V3", "  agent:main  ", "agent-main-f331f052"},
		{"V4 empty", "", "session-3f3af1ec"},
		{"V4 spaces", "   ", "session-3f3af1ec"},
		{"V5", "!!!", "session-e84c538e"},
		{"V6", "Agent:Main", "agent-main-e4eb4bf6"},
		{"V7", "agent:work:telegram:group:-100123:topic:5", "agent-work-telegram-group--10012-9d6aff37"},
		{"V8", "agent:main:whatsapp:+15555550123", "agent-main-whatsapp-15555550123-eff619d2"},
		{"V9", "日本語", "session-77710aed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := policy.Slug(tc.key); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestContainerName(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, tc := range map[string]struct{ prefix, key, want string }{
		"V1":              {prefix, "agent:main", "openclaw-sbx-agent-main-f331f052"},
		"shared":          {prefix, "shared", "openclaw-sbx-shared"},
		"no prefix":       {"", "agent:main", "agent-main-f331f052"},
		"300 bytes":       {prefix, "agent:main:" + long, "openclaw-sbx-agent-main-" + long[:21] + "-"},
		"long prefix cut": {strings.Repeat("p", 50), "agent:main", strings.Repeat("p", 50) + "-"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := policy.ContainerName(tc.prefix, tc.key)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > 63 || !dockerName.MatchString(got) {
				t.Errorf("%q is not a container name", got)
			}
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A name that must be cut keeps its identity: 12 digits of the whole name.
func TestContainerNameKeepsTheHashWhenCut(t *testing.T) {
	longPrefix := strings.Repeat("p", 60) + "-"
	a, errA := policy.ContainerName(longPrefix, "agent:a")
	b, errB := policy.ContainerName(longPrefix, "agent:b")
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if a == b || len(a) != 63 || a[:51] != b[:51] {
		t.Errorf("cut names %q and %q", a, b)
	}
	if net := policy.PairName(a); len(net) != 63 || net == a {
		t.Errorf("pair of %q is %q", a, net)
	}
	if net := policy.PairName("box"); net != "box-net" {
		t.Errorf("pair of box is %q", net)
	}
}

func TestContainerNameRefusesBadPrefixes(t *testing.T) {
	for _, bad := range []string{"-x", "_", ".", "a b", "ü-", "a/b", "a\x00", "a\n", "'; rm -rf /"} {
		name, err := policy.ContainerName(bad, "agent:main")
		if err == nil {
			t.Errorf("%q: accepted as %q", bad, name)
			continue
		}
		if !strings.Contains(errhint.Of(err), "containerPrefix") {
			t.Errorf("%q: the hint %q does not name the field", bad, errhint.Of(err))
		}
	}
}

// Two accounts never share a name, and nobody can choose a key that gives the
// name of another account's sandbox.
func TestAccountsHaveNamesOfTheirOwn(t *testing.T) {
	main := policy.Sessions{}.Parse("main")
	seen := map[string]string{}
	for _, scope := range []config.Scope{config.ScopeShared, config.ScopeAgent, config.ScopeSession} {
		for _, account := range []string{"", "a", "b", "a:agent:main", "a%3Aagent", strings.Repeat("q", 300), "日本\n"} {
			key := policy.ScopeKey(scope, main, account)
			name, err := policy.ContainerName(prefix, key)
			if err != nil || len(name) > 63 || len(policy.PairName(name)) > 63 {
				t.Errorf("%q: %q, %v", key, name, err)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("%q and %q are both %q", key, other, name)
			}
			seen[name] = key
			if account != "" && !regexp.MustCompile(`-[0-9a-f]{32}$`).MatchString(name) {
				t.Errorf("%q has no digest of 32 digits", name)
			}
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, seed := range [][2]string{
		{"agent:main", "agent:work"}, {"Agent:Main", "agent:main"}, {"", "!"}, {"日本", "日本語"}, {"\x00", "\xff"},
		{strings.Repeat("a", 300), strings.Repeat("a", 301)}, {"account:a:agent:x", "account:b:agent:x"}, {"..", "."},
	} {
		f.Add(seed[0], seed[1], prefix)
		f.Add(seed[0], seed[1], strings.Repeat("p", 70))
	}
	f.Fuzz(func(t *testing.T, a, b, prefix string) {
		nameA, errA := policy.ContainerName(prefix, a)
		nameB, errB := policy.ContainerName(prefix, b)
		if errA != nil || errB != nil {
			return
		}
		for _, name := range []string{nameA, nameB, policy.PairName(nameA)} {
			if len(name) > 63 || !dockerName.MatchString(name) {
				t.Errorf("%q is not a container name", name)
			}
		}
		if nameA == nameB && meaning(a) != meaning(b) {
			t.Errorf("%q and %q are both %q", a, b, nameA)
		}
	})
}

// meaning is what a scope key says: space around it says nothing, and an empty
// key is the word "session".
func meaning(key string) string {
	key = strings.Trim(key, " \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff")
	if key == "" {
		return "session"
	}
	return key
}
