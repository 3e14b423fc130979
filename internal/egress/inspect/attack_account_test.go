package inspect_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/preset"
	"github.com/atoll-run/atoll/internal/egress/rule"
)

// policy compiles rules as a configuration has them.
func policy(t *testing.T, rules ...config.EgressRule) *rule.Policy {
	t.Helper()
	p, err := rule.Compile(&config.Egress{Mode: config.EgressEnforce, Allow: rules}, preset.Hosts{})
	check(t, err)
	return p
}

// TestAttack18_AllowedHostOtherAccount uses a host that is allowed to write to an
// account that is not: method and path rules, clone without push, and no credential but
// the placeholder.
func TestAttack18_AllowedHostOtherAccount(t *testing.T) {
	var reached atomic.Int32
	w := newWorld(t, http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		reached.Add(1)
		echo(out, q)
	}), github())
	p := policy(t,
		config.EgressRule{Host: site, Methods: []string{"GET", "HEAD"}, Paths: []string{"/repos/acme/**"}, Secret: "github"},
		config.EgressRule{Host: site, Git: config.GitRead, Secret: "github"})
	w.change(func() {
		w.decide = func(method, target string) rule.Decision { return p.Request(site, 443, method, target) }
	})
	ours := "Bearer " + w.placeholder()
	for name, c := range map[string]struct {
		method, path, auth string
		status             int
		kind               inspect.Kind
	}{
		"read":                {"GET", "/repos/acme/x/issues?q=1", ours, 200, ""},
		"read, no credential": {"HEAD", "/repos/acme/x", "", 200, ""},
		"clone":               {"GET", "/acme/x.git/info/refs?service=git-upload-pack", ours, 200, ""},
		"fetch":               {"POST", "/acme/x.git/git-upload-pack", ours, 200, ""},
		"push, first":         {"GET", "/acme/x.git/info/refs?service=git-receive-pack", ours, 403, inspect.Denied},
		"push":                {"POST", "/evil/x.git/git-receive-pack", ours, 403, inspect.Denied},
		"comment":             {"POST", "/repos/acme/x/issues", ours, 403, inspect.Denied},
		"GraphQL":             {"POST", "/graphql", ours, 403, inspect.Denied},
		"gist":                {"POST", "/gists", ours, 403, inspect.Denied},
		"publish":             {"PUT", "/-/package/x", ours, 403, inspect.Denied},
		"another repository":  {"GET", "/repos/evil/x", ours, 403, inspect.Denied},
		"small letters":       {"post", "/repos/acme/x", ours, 403, inspect.Denied},
		"another account":     {"GET", "/repos/acme/x", "Bearer ghp_ofsomeoneelse0123456789abcdef0123456", 403, inspect.LeakAttempt},
		"escaped slash":       {"GET", "/repos/acme%2f..%2fevil", ours, 400, inspect.Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			before := reached.Load()
			header := []string{}
			if c.auth != "" {
				header = append(header, "Authorization", c.auth)
			}
			status, text, _ := w.do(c.method, c.path, "", header...)
			if status != c.status || (reached.Load() == before) != (c.kind != "") {
				t.Errorf("%d %s", status, text)
			}
			if c.kind == inspect.Denied && !strings.Contains(text, "hint: add { host: ") {
				t.Errorf("no hint: %s", text)
			}
		})
	}
}

// TestWithoutARecordNothingIsSent: a request that cannot be recorded does not leave.
func TestWithoutARecordNothingIsSent(t *testing.T) {
	var reached atomic.Int32
	w := newWorld(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	w.change(func() { w.recordErr = context.DeadlineExceeded })
	if status, _, _ := w.do("GET", "/", ""); status != 503 || reached.Load() != 0 || w.dials != 0 {
		t.Errorf("%d, %d reached, %d connections", status, reached.Load(), w.dials)
	}
}

// TestRefusalsAreRecordedFirst: a program that ends on the answer has its refusal on
// record by then.
func TestRefusalsAreRecordedFirst(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo))
	var recorded atomic.Bool
	w.change(func() {
		w.decide = func(string, string) rule.Decision { return rule.Decision{Reason: "no"} }
		w.refused = func(*inspect.Refusal) {
			time.Sleep(20 * time.Millisecond)
			recorded.Store(true)
		}
	})
	if status, _, _ := w.do("GET", "/", ""); status != 403 || !recorded.Load() {
		t.Errorf("answered with %d, recorded %v", status, recorded.Load())
	}
}
