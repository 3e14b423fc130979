package rule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/preset"
	"github.com/atoll-run/atoll/internal/egress/rule"
)

func TestMethodsAndPaths(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: [
		{ host: "api.example.com", methods: ["GET", "HEAD"], paths: ["/repos/acme/**", "/users/*/keys.json"], secret: "forge" },
		{ host: "api.example.com", methods: ["POST"], paths: ["/repos/acme/x/issues"] },
		{ host: "all.example.com", methods: ["GET"] }] }`, nil)
	for _, c := range []struct {
		method, target string
		allow          bool
	}{
		{"GET", "/repos/acme/x", true},
		{"GET", "/repos/acme", true},
		{"HEAD", "/repos/acme/x/y/z?q=1", true},
		{"GET", "/users/kai/keys.json", true},
		{"GET", "/users/kai/more/keys.json", false},
		{"GET", "/users/keys.json", false},
		{"POST", "/repos/acme/x/issues", true},
		{"POST", "/repos/acme/x/issues?a=b", true},
		{"POST", "/repos/acme/x/pulls", false},
		{"POST", "/graphql", false},
		{"PUT", "/repos/acme/x/issues", false},
		{"get", "/repos/acme/x", false},
		{"CONNECT", "/repos/acme/x", false},
		{"TRACE", "/repos/acme/x", false},
		{"", "/repos/acme/x", false},
		{"GET ", "/repos/acme/x", false},
		{"GET", "/repos/acmeevil/x", false},
		{"GET", "/repos/acme/../evil/x", false},
		{"GET", "/repos/acme/%2e%2e/evil", false},
		{"GET", "/repos/acme/.%2E/evil", false},
		{"GET", "/repos/acme/..%2fevil", false},
		{"GET", "/repos/acme/..;/evil", false},
		{"GET", "/repos/acme//evil", false},
		{"GET", "/repos/acme/..\\evil", false},
		{"GET", "/repos/acme/%5c..%5cevil", false},
		{"GET", "/repos/acme/%252e%252e/evil", false},
		{"GET", "/repos/acme/x%00", false},
		{"GET", "/repos/acme/./x", false},
		{"GET", "/repos/acme/%", false},
		{"GET", "/repos/acme/%zz", false},
		{"GET", "//repos/acme/x", false},
		{"GET", "https://evil.example.net/repos/acme/x", false},
		{"GET", "repos/acme/x", false},
		{"GET", "*", false},
		{"GET", "", false},
		{"GET", "/repos/acme/x#y", false},
		{"GET", "/repos/acme/x y", false},
		{"GET", "/repos/acme/x\r\nHost: evil", false},
		{"GET", "/repos/acme/ü", false},
		{"GET", "/repos/%61cme/x", false},
	} {
		d := p.Request("api.example.com", 443, c.method, c.target)
		if d.Allow != c.allow || d.Action != rule.Inspect || !d.Allow && d.Reason == "" {
			t.Errorf("%s %s: %+v", c.method, c.target, d)
		}
	}
	if d := p.Request("all.example.com", 443, "GET", "/@scope%2fname/../x"); !d.Allow {
		t.Errorf("a rule for every path: %+v", d)
	}
	d := p.Request("api.example.com", 443, "GET", "/repos/acme/x")
	if !slices.Equal(d.Secrets, []string{"forge"}) {
		t.Errorf("secrets: %+v", d)
	}
	if d := p.Request("api.example.com", 443, "POST", "/repos/acme/x/issues"); d.Secrets != nil {
		t.Errorf("secrets of another rule: %+v", d)
	}
}

func TestTargetIsBounded(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: [{ host: "api.example.com", methods: ["GET"] }] }`, nil)
	for size, want := range map[int]bool{8 << 10: true, 8<<10 + 1: false} {
		if d := p.Request("api.example.com", 443, "GET", "/"+strings.Repeat("a", size-1)); d.Allow != want {
			t.Errorf("%d bytes: %+v", size, d)
		}
	}
}

// TestMostSpecificNameCounts has a condition for one name below a wildcard
// that has none.
func TestMostSpecificNameCounts(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: ["*.example.com", { host: "*.a.example.com", methods: ["GET"] }, { host: "x.a.example.com", methods: ["HEAD"] }, "x.a.example.com:22"] }`, nil)
	for _, c := range []struct {
		name, method string
		action       rule.Action
		allow        bool
	}{
		{"b.example.com", "POST", rule.Splice, true},
		{"b.a.example.com", "GET", rule.Inspect, true},
		{"b.a.example.com", "POST", rule.Inspect, false},
		{"x.a.example.com", "GET", rule.Inspect, false},
		{"x.a.example.com", "HEAD", rule.Inspect, true},
	} {
		if d := p.Request(c.name, 443, c.method, "/"); d.Allow != c.allow || d.Action != c.action {
			t.Errorf("%s %s: %+v", c.method, c.name, d)
		}
	}
	if got := p.Ports("x.a.example.com"); !slices.Equal(got, []int{22, 80, 443}) {
		t.Errorf("ports: %v", got)
	}
}

// TestInspectionIsKept has a rule without conditions beside one with: what the
// one allows stays allowed, and the connection is still read.
func TestInspectionIsKept(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: ["api.example.com", { host: "api.example.com", methods: ["GET"], secret: "forge" }] }`, nil)
	if d := p.Connect("api.example.com", 443); d.Action != rule.Inspect || !slices.Equal(d.Secrets, []string{"forge"}) {
		t.Errorf("%+v", d)
	}
	if d := p.Request("api.example.com", 443, "POST", "/"); !d.Allow || d.Secrets != nil {
		t.Errorf("%+v", d)
	}
}

func TestCloneIsNotPush(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: ["preset:github-read", { host: "git.example.com", git: "read" }, { host: "push.example.com", git: "write", paths: ["/acme/x.git/**"] },
		{ host: "get.example.com", methods: ["GET", "HEAD"] }] }`, nil)
	for _, c := range []struct {
		host, method, target string
		allow                bool
	}{
		{"github.com", "GET", "/acme/x.git/info/refs?service=git-upload-pack", true},
		{"github.com", "POST", "/acme/x.git/git-upload-pack", true},
		{"github.com", "GET", "/acme/x.git/info/refs?service=git-receive-pack", false},
		{"github.com", "GET", "/acme/x.git/info/refs?service=git-upload-pack&service=git-receive-pack", false},
		{"github.com", "GET", "/acme/x.git/info/refs?service=git%2dreceive-pack", false},
		{"github.com", "GET", "/acme/x.git/info/refs?a=%zz", false},
		{"github.com", "POST", "/acme/x.git/git-receive-pack", false},
		{"github.com", "POST", "/acme/x/git-receive-pack", false},
		{"github.com", "GET", "/acme/x", true},
		{"github.com", "POST", "/acme/x/issues", false},
		{"github.com", "PUT", "/acme/x.git/git-upload-pack", false},
		{"api.github.com", "GET", "/repos/acme/x", true},
		{"api.github.com", "POST", "/graphql", false},
		{"api.github.com", "POST", "/gists", false},
		{"api.github.com", "POST", "/repos/acme/x/git-upload-pack", false},
		{"git.example.com", "GET", "/x/info/refs?service=git-upload-pack", true},
		{"git.example.com", "POST", "/x/git-upload-pack", true},
		{"git.example.com", "POST", "/x/git-receive-pack", false},
		{"git.example.com", "GET", "/x", false},
		{"push.example.com", "GET", "/acme/x.git/info/refs?service=git-receive-pack", true},
		{"push.example.com", "POST", "/acme/x.git/git-receive-pack", true},
		{"push.example.com", "POST", "/acme/x.git/git-upload-pack", true},
		{"push.example.com", "POST", "/evil/x.git/git-receive-pack", false},
		{"push.example.com", "POST", "/acme/x.git/issues", false},
		{"get.example.com", "POST", "/x/git-upload-pack", false},
		{"get.example.com", "GET", "/x/info/refs?service=git-receive-pack", false},
		{"get.example.com", "GET", "/x/info/refs?service=git-upload-pack", true},
	} {
		if d := p.Request(c.host, 443, c.method, c.target); d.Allow != c.allow {
			t.Errorf("%s https://%s%s: %+v", c.method, c.host, c.target, d)
		}
	}
	for _, name := range []string{"gist.github.com", "uploads.github.com"} {
		if d := p.Connect(name, 443); d.Allow {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// found is what clients of a host say in tests.
var found = preset.Hosts{
	"npm": {Endpoints: []preset.Endpoint{{Host: "npm.example.org", Port: 443}, {Host: "npm.acme.example", Port: 4873, Plain: true}}},
	"apt": {Endpoints: []preset.Endpoint{{Host: "deb.example.org", Port: 80, Plain: true}, {Host: "deb.acme.example", Port: 443}}},
	"pip": {Err: fmt.Errorf("it is not installed on this host")},
}

func TestPresetsOfClients(t *testing.T) {
	p := compile(t, `{ mode: "enforce", allow: ["preset:npm-read", "preset:debian"] }`, found)
	for _, c := range []struct {
		host           string
		port           int
		method, target string
		action         rule.Action
		allow          bool
	}{
		{"npm.example.org", 443, "GET", "/@acme%2fx", rule.Inspect, true},
		{"npm.example.org", 443, "PUT", "/@acme%2fx", rule.Inspect, false},
		{"npm.example.org", 443, "POST", "/-/v1/login", rule.Inspect, false},
		{"npm.acme.example", 4873, "GET", "/x", rule.HTTP, true},
		{"npm.acme.example", 4873, "PUT", "/x", rule.HTTP, false},
		{"npm.acme.example", 443, "GET", "/x", "", false},
		{"deb.example.org", 80, "GET", "/debian/x", rule.HTTP, true},
		{"deb.example.org", 80, "POST", "/debian/x", rule.HTTP, false},
		{"deb.acme.example", 443, "GET", "/x", rule.Splice, true},
	} {
		if d := p.Request(c.host, c.port, c.method, c.target); d.Allow != c.allow || d.Action != c.action {
			t.Errorf("%s %s:%d%s: %+v", c.method, c.host, c.port, c.target, d)
		}
	}
	if d := p.Connect("npm.example.org", 443); !strings.HasPrefix(d.Rule, "preset:npm-read (") {
		t.Errorf("rule: %q", d.Rule)
	}
}

// TestSecretsLeaveEncrypted has rules that would put a secret into plain HTTP.
func TestSecretsLeaveEncrypted(t *testing.T) {
	for _, r := range []config.EgressRule{
		{Host: "a.example.com", Secret: "s", Ports: []int{80}},
		{Host: "a.example.com", Secret: "s", Ports: []int{80, 443}},
		{Host: "a.example.com", Secret: "s", Mode: "http"},
		{Host: "a.example.com", Secret: "s", Mode: "http", Ports: []int{8080}, Upgrade: true},
		{Host: "a.example.com", Secret: "s", Mode: "tcp", Ports: []int{443}},
		{Host: "a.example.com", Secret: "s", Mode: "splice"},
	} {
		e := config.Egress{Mode: config.EgressEnforce, Allow: []config.EgressRule{r}}
		if _, err := rule.Compile(&e, nil); err == nil {
			t.Errorf("%s is accepted", r)
		}
	}
	p := compile(t, `{ mode: "enforce", allow: ["a.example.com:80", { host: "a.example.com", secret: "forge", upgrade: true }] }`, nil)
	if d := p.Request("a.example.com", 80, "GET", "/"); !d.Upgrade || !slices.Equal(d.Secrets, []string{"forge"}) {
		t.Errorf("beside a plain rule: %+v", d)
	}
}

func TestPresetWithoutHosts(t *testing.T) {
	e := config.Egress{Mode: config.EgressEnforce, Allow: []config.EgressRule{{Preset: "pypi"}}}
	if _, err := rule.Compile(&e, found); err == nil || !strings.Contains(err.Error(), "preset:pypi: no host is known for it: it is not installed") {
		t.Errorf("error: %v", err)
	}
	e.Allow[0].Preset = "packages"
	p, err := rule.Compile(&e, found)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Connect("npm.example.org", 443); !d.Allow || d.Action != rule.Splice {
		t.Errorf("%+v", d)
	}
}

// lines is an explanation in one text.
func lines(e *rule.Explanation) string {
	text := "denied: " + e.Reason + "\n"
	if e.Allow {
		text = fmt.Sprintf("allowed: %s:%d, %s\n", e.Name, e.Port, e.Action)
	}
	for _, part := range []struct{ key, text string }{{"rule", e.Rule}, {"hint", e.Hint}} {
		if part.text != "" {
			text += part.key + ": " + part.text + "\n"
		}
	}
	for _, note := range e.Notes {
		text += "note: " + note + "\n"
	}
	return text
}

func TestExplain(t *testing.T) {
	p := compile(t, "{ mode: \"enforce\", allow: [\n{ host: \"api.example.com\", methods: [\"GET\", \"HEAD\"] },\n\"api.openai.com\", \"d111.cloudfront.net\", { host: \"xn--bcher-kva.example\", upgrade: true }],\nvia: { \"*.cloudfront.net\": \"socks5://127.0.0.1:1055\" } }", nil)
	for _, c := range []struct{ method, address, want string }{
		{"POST", "https://api.example.com/repos?x=1", "denied: method POST is not in the rule (GET, HEAD)\n" +
			"rule: { host: \"api.example.com\", methods: [\"GET\", \"HEAD\"] } (agents.defaults.sandbox.egress.allow[0], line 3)\n" +
			"hint: add { host: \"api.example.com\", methods: [\"POST\"], paths: [\"/repos\"] }\n"},
		{"", "https://api.example.com/repos", "allowed: api.example.com:443, inspect\nrule: { host: \"api.example.com\", methods: [\"GET\", \"HEAD\"] } (agents.defaults.sandbox.egress.allow[0], line 3)\n"},
		{"", "other.example.com", "denied: no rule allows other.example.com on port 443\nhint: add \"other.example.com\" to sandbox.egress.allow\n"},
		{"", "other.example.com:22", "denied: no rule allows other.example.com on port 22\nhint: add \"other.example.com:22\" to sandbox.egress.allow\n"},
		{"", "https://api.openai.com/v1", "allowed: api.openai.com:443, splice\nrule: api.openai.com (agents.defaults.sandbox.egress.allow[1], line 4)\n" +
			"note: unbilled: the host serves models, and nothing that goes there is counted or paid through the model proxy\n"},
		{"PUT", "https://d111.cloudfront.net/", "allowed: d111.cloudfront.net:443, splice\nrule: d111.cloudfront.net (agents.defaults.sandbox.egress.allow[2], line 4)\n" +
			"note: methods and paths are not seen in the mode splice\n" +
			"note: the name is on Amazon CloudFront, which serves many owners: in the mode splice others of them can be reached behind it\n" +
			"note: it goes through socks5://127.0.0.1:1055, which resolves the name: addresses are not checked here\n"},
		{"", "http://xn--bcher-kva.example/", "allowed: xn--bcher-kva.example:80, http\nrule: { host: \"xn--bcher-kva.example\", upgrade: true } (agents.defaults.sandbox.egress.allow[3], line 4)\n" +
			"note: the name is read as \"bücher.example\"\nnote: it is sent on with TLS, to port 443\n"},
		{"", "https://169.254.169.254/latest", "denied: the name is refused: it is an address, and rules are for names\n"},
	} {
		e, err := p.Explain(c.method, c.address)
		if got := lines(&e); err != nil || got != c.want {
			t.Errorf("%s %s: %v\n%s", c.method, c.address, err, got)
		}
	}
	for _, address := range []string{"gopher://a.example", "https://", "https://a.example:x/", "a.example:99999", "://"} {
		if e, err := p.Explain("", address); err == nil {
			t.Errorf("%q: %+v", address, e)
		}
	}
}
