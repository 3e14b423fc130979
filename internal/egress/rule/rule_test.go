package rule_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/preset"
	"github.com/atoll-run/atoll/internal/egress/rule"
)

// compile reads the body of sandbox.egress and compiles it.
func compile(t testing.TB, egress string, hosts preset.Hosts) *rule.Policy {
	t.Helper()
	src := `{
		agents: { defaults: { sandbox: { egress: ` + egress + ` } } },
		secrets: { forge: { hosts: ["*.example.com", "example.com"] } },
	}`
	c, err := config.Parse("/project/atoll.json5", []byte(src), config.Environment{Home: "/home/user", Cwd: "/project"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	p, err := rule.Compile(&a.Sandbox.Egress, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOffAllowsNothing(t *testing.T) {
	p := compile(t, `{ allow: ["example.com"] }`, nil)
	if d := p.Connect("example.com", 443); d.Allow || d.Ask || d.Hint == "" || p.Mode() != config.EgressOff {
		t.Errorf("off: %+v", d)
	}
}

func TestEnforce(t *testing.T) {
	p := compile(t, `{ mode: "enforce",
		allow: ["example.com", "*.example.net", "git.example.com:22", { host: "web.example.com", upgrade: true }, { host: "plain.example.com", mode: "http" },
			{ host: "api.example.com", methods: ["GET"] }],
		deny: ["bad.example.net", "*.worse.example.net", "git.example.com:443"] }`, nil)
	for _, c := range []struct {
		name   string
		port   int
		allow  bool
		action rule.Action
	}{
		{"example.com", 443, true, rule.Splice},
		{"EXAMPLE.com.", 443, true, rule.Splice},
		{"example.com", 80, false, ""},
		{"example.com", 22, false, ""},
		{"www.example.com", 443, false, ""},
		{"a.example.net", 443, true, rule.Splice},
		{"a.b.example.net", 443, true, rule.Splice},
		{"example.net", 443, false, ""},
		{"evil-example.net", 443, false, ""},
		{"example.net.evil.org", 443, false, ""},
		{"bad.example.net", 443, false, ""},
		{"a.bad.example.net", 443, true, rule.Splice},
		{"a.worse.example.net", 443, false, ""},
		{"git.example.com", 22, true, rule.TCP},
		{"git.example.com", 443, false, ""},
		{"web.example.com", 80, true, rule.HTTP},
		{"web.example.com", 443, true, rule.Splice},
		{"plain.example.com", 80, true, rule.HTTP},
		{"plain.example.com", 443, false, ""},
		{"api.example.com", 443, true, rule.Inspect},
	} {
		d := p.Connect(c.name, c.port)
		if d.Allow != c.allow || d.Action != c.action || d.Ask {
			t.Errorf("%s:%d: %+v", c.name, c.port, d)
		}
		if !d.Allow && d.Reason == "" || d.Allow && d.Rule == "" {
			t.Errorf("%s:%d is not explained: %+v", c.name, c.port, d)
		}
	}
	if d := p.Connect("web.example.com", 80); !d.Upgrade {
		t.Errorf("upgrade: %+v", d)
	}
	if d := p.Connect("web.example.com", 443); d.Upgrade {
		t.Errorf("upgrade of TLS: %+v", d)
	}
}

func TestRuleNamesKeyAndLine(t *testing.T) {
	p := compile(t, "{ mode: \"enforce\",\n allow: [\"a.example.com\",\n \"b.example.com\"],\n deny: [\"c.example.com\"] }", nil)
	if d := p.Connect("b.example.com", 443); d.Rule != "b.example.com (agents.defaults.sandbox.egress.allow[1], line 4)" {
		t.Errorf("rule: %q", d.Rule)
	}
	if d := p.Connect("c.example.com", 443); d.Allow || d.Rule != "c.example.com (agents.defaults.sandbox.egress.deny[0], line 5)" {
		t.Errorf("rule: %q", d.Rule)
	}
}

// TestAddressesInPlaceOfNames has the spellings of addresses, and names with
// something in them that another program would cut off.
func TestAddressesInPlaceOfNames(t *testing.T) {
	p := compile(t, `{ mode: "public", allow: ["example.com", "*.example.com"] }`, nil)
	for _, name := range []string{
		"93.184.216.34", "1572395042", "0x5db8d822", "0135.0270.0330.042", "93.184.55330", "[2606:2800:21f:cb07::1]", "2606:2800:21f:cb07::1", "::ffff:93.184.216.34",
		"64:ff9b::5db8:d822", "[example.com]", "fe80::1%eth0", "example.com:443", "evil.net\x00.example.com", "example.com\x00", "\x00.example.com", "exаmple.com",
		"example.com%00.evil.net", " example.com", "example.com/", "_.example.com", "example..com", "",
	} {
		for _, d := range []rule.Decision{p.Connect(name, 443), p.Request(name, 443, "GET", "/")} {
			if d.Allow || d.Ask {
				t.Errorf("%q is allowed: %+v", name, d)
			}
		}
	}
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		mode       string
		allow, ask bool
	}{{"public", true, false}, {"learn", true, false}, {"ask", false, true}, {"enforce", false, false}, {"off", false, false}} {
		p := compile(t, `{ mode: "`+c.mode+`", deny: ["denied.example.com"] }`, nil)
		for _, port := range []int{80, 443} {
			if d := p.Connect("www.example.com", port); d.Allow != c.allow || d.Ask != c.ask {
				t.Errorf("%s, port %d: %+v", c.mode, port, d)
			}
		}
		for _, at := range []struct {
			name string
			port int
		}{
			{"www.example.com", 22}, {"www.example.com", 25}, {"www.example.com", 3128}, {"www.example.com", 18789}, {"www.example.com", 0}, {"www.example.com", 65536},
			{"denied.example.com", 443}, {"localhost", 443}, {"intranet", 80}, {"printer.local", 80}, {"a.localhost", 443}, {"db.internal", 443}, {"x.onion", 443},
			{"metadata.google.internal", 80}, {"api.openai.com", 443}, {"dns.google", 443}, {"cloudflare-ech.com", 443},
		} {
			if d := p.Connect(at.name, at.port); d.Allow || d.Ask {
				t.Errorf("%s: %s:%d: %+v", c.mode, at.name, at.port, d)
			}
		}
	}
}

func TestModelHostsMustBeNamed(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: ["*.anthropic.com", "*.amazonaws.com", "api.openai.com"] }`, nil)
	for name, want := range map[string]bool{
		"api.anthropic.com": false, "docs.anthropic.com": true, "bedrock-runtime.eu-west-1.amazonaws.com": false,
		"api.openai.com": true,
	} {
		d := p.Connect(name, 443)
		if d.Allow != want || !want && !strings.Contains(d.Hint, "unbilled") {
			t.Errorf("%s: %+v", name, d)
		}
		if d.Unbilled != (name == "api.openai.com") {
			t.Errorf("%s: unbilled %v", name, d.Unbilled)
		}
	}
}

func TestConfiguredProviderIsAModelHost(t *testing.T) {
	e := config.Egress{Mode: config.EgressPublic, ModelHosts: []string{"models.example.com"}}
	p, err := rule.Compile(&e, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Connect("models.example.com", 443); d.Allow {
		t.Errorf("%+v", d)
	}
}

func TestResolversMustBeNamed(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: ["*.cloudflare-dns.com", "*.quad9.net", "dns.google", "*.nextdns.io"] }`, nil)
	for name, want := range map[string]bool{"mozilla.cloudflare-dns.com": false, "dns.quad9.net": false, "abc123.dns.nextdns.io": false, "dns.google": true} {
		if d := p.Connect(name, 443); d.Allow != want {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestMetadataNamesCannotBeNamed(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: ["metadata.google.internal", "metadata.goog:80"] }`, nil)
	for _, name := range []string{"metadata.google.internal", "metadata.goog"} {
		for _, port := range []int{80, 443} {
			if d := p.Connect(name, port); d.Allow {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}

// TestPrivateNetworksNeedARule has a name of a stranger in the modes that allow
// public names: it may not lead into a network that was opened for others.
func TestPrivateNetworksNeedARule(t *testing.T) {
	for _, mode := range []string{"public", "learn", "ask"} {
		p := compile(t, `{ mode: "`+mode+`", allow: ["inner.example.com"], private: ["10.2.3.0/24", "198.18.0.0/15"] }`, nil)
		if d := p.Connect("inner.example.com", 443); len(d.Private) != 2 {
			t.Errorf("%s: a named host: %v", mode, d.Private)
		}
		if d := p.Connect("stranger.example.net", 443); len(d.Private) != 1 || d.Private[0].String() != "198.18.0.0/15" {
			t.Errorf("%s: another: %v", mode, d.Private)
		}
		if d := p.Request("inner.example.com", 443, "GET", "/"); len(d.Private) != 2 {
			t.Errorf("%s: a request: %v", mode, d.Private)
		}
	}
}

// TestLookAlikes has names that are read like an allowed one.
func TestLookAlikes(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: ["apple.example.com", "*.example.com"] }`, nil)
	for _, name := range []string{
		"xn--pple-43d.example.net", "apple.xn--exmple-4nf.com", "аpple.example.com", "apple.example.com.xn--p1ai", "apple。example。com", "xn--apple.example.com", "ａpple.example.com",
	} {
		if d := p.Connect(name, 443); d.Allow {
			t.Errorf("%s: %+v", name, d)
		}
	}
	e, err := p.Explain("", "xn--pple-43d.example.com")
	if err != nil || len(e.Notes) == 0 || !strings.Contains(e.Notes[0], "аpple") {
		t.Errorf("a name below the wildcard is not shown as it is read: %+v, %v", e, err)
	}
}
