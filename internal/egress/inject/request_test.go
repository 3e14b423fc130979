package inject_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/secret"
)

const (
	host  = "api.example.com"
	value = "ghp_0123456789abcdefABCDEF0123456789abcd"
)

func named(t *testing.T, name, form string, hosts ...string) inject.Secret {
	t.Helper()
	s, err := inject.Bind(&config.NamedSecret{Name: name, Hosts: hosts, Header: "Authorization", Form: form, Env: strings.ToUpper(name)}, secret.New(value))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, dir string, secrets ...inject.Secret) *inject.Set {
	t.Helper()
	s, err := inject.Open(dir, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestTheValueIsPutIntoTheHeader(t *testing.T) {
	for name, c := range map[string]struct{ form, written, want string }{
		"as written":       {"", "token {}", "token " + value},
		"in its form":      {"Bearer {}", "token {}", "Bearer " + value},
		"alone":            {"", "{}", value},
		"inside Basic":     {"", basic("x-access-token:{}"), basic("x-access-token:" + value)},
		"Basic stays":      {"Bearer {}", basic("{}:x-oauth-basic"), basic(value + ":x-oauth-basic")},
		"a form of Basic":  {"Basic user:{}", "Bearer {}", basic("user:" + value)},
		"quoted parameter": {"", `Digest a="{}", b`, `Digest a="` + value + `", b`},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), named(t, "github", c.form, host))
			fake := s.Environment()["GITHUB"]
			header := http.Header{"Authorization": {fill(c.written, fake)}, "Accept": {"text/plain"}}
			injected, err := s.Request(host, []string{"github"}, "/x?y=z", header)
			if err != nil || !injected || header.Get("Authorization") != c.want {
				t.Errorf("%v %v %q", injected, err, header.Get("Authorization"))
			}
		})
	}
}

// fill puts a placeholder into a text, also behind base64.
func fill(text, fake string) string {
	encoded, ok := strings.CutPrefix(text, "Basic ")
	plain, err := base64.StdEncoding.DecodeString(encoded)
	if ok && err == nil {
		return basic(strings.ReplaceAll(string(plain), "{}", fake))
	}
	return strings.ReplaceAll(text, "{}", fake)
}

func TestARequestWithoutThePlaceholderIsLeftAlone(t *testing.T) {
	s := open(t, t.TempDir(), named(t, "github", "", host))
	header := http.Header{"Accept": {"text/plain"}}
	if injected, err := s.Request(host, []string{"github"}, "/", header); injected || err != nil {
		t.Error(injected, err)
	}
	header = http.Header{"Authorization": {"Bearer of-another-service"}}
	if injected, err := s.Request("other.example.com", nil, "/", header); injected || err != nil {
		t.Error(injected, err)
	}
}

// TestInvariant_EGRESS_SECRET_BOUND: a value is put in nowhere but in the one header, for
// a bound host that the rule gives it to. Anywhere else the placeholder is a leak, and
// the value is in no part of what would be sent.
func TestInvariant_EGRESS_SECRET_BOUND(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, named(t, "github", "", host), named(t, "other", "", "other.example.com"))
	fake, other := s.Environment()["GITHUB"], s.Environment()["OTHER"]
	allowed := []string{"github", "other"}
	auth := func(text string) http.Header { return http.Header{"Authorization": {text}} }
	hexed := ""
	for _, c := range []byte(fake) {
		hexed += "%" + string("0123456789ABCDEF"[c>>4]) + string("0123456789ABCDEF"[c&15])
	}
	for name, c := range map[string]struct {
		host    string
		allowed []string
		target  string
		header  http.Header
	}{
		"another host":           {"evil.example.com", allowed, "/", auth("Bearer " + fake)},
		"a name below":           {"x." + host, allowed, "/", auth("Bearer " + fake)},
		"a rule without it":      {host, nil, "/", auth("Bearer " + fake)},
		"another secret's":       {host, allowed, "/", auth("Bearer " + other)},
		"both":                   {host, allowed, "/", auth(basic(fake + ":" + other))},
		"twice":                  {host, allowed, "/", auth(fake + " " + fake)},
		"part of a word":         {host, allowed, "/", auth("Bearer x" + fake)},
		"two fields":             {host, allowed, "/", http.Header{"Authorization": {"Bearer " + fake, "Bearer " + fake}}},
		"own credential":         {host, allowed, "/", auth("Bearer of-another-account")},
		"own, in Basic":          {host, allowed, "/", auth(basic("me:of-another-account"))},
		"path":                   {host, allowed, "/" + fake, nil},
		"query":                  {host, allowed, "/?t=" + fake, nil},
		"query, escaped":         {host, allowed, "/?t=" + hexed, nil},
		"query, escaped twice":   {host, allowed, "/?t=" + url.QueryEscape(hexed), nil},
		"query, base64":          {host, allowed, "/?t=" + base64.RawURLEncoding.EncodeToString([]byte("x"+fake)), nil},
		"another header":         {host, allowed, "/", http.Header{"X-Token": {fake}}},
		"name of a header":       {host, allowed, "/", http.Header{"X-" + fake: {"1"}}},
		"cookie":                 {host, allowed, "/", http.Header{"Cookie": {"a=b; t=" + fake}}},
		"cookie, base64":         {host, allowed, "/", http.Header{"Cookie": {"t=" + base64.StdEncoding.EncodeToString([]byte("ab"+fake))}}},
		"other credential field": {host, allowed, "/", http.Header{"Proxy-Authorization": {basic("x:" + fake)}}},
	} {
		t.Run(name, func(t *testing.T) {
			injected, err := s.Request(c.host, c.allowed, c.target, c.header)
			leak, ok := errors.AsType[*inject.Leak](err)
			if injected || !ok || leak.Secret == "" || strings.Contains(err.Error(), value) || strings.Contains(err.Error(), fake) {
				t.Errorf("%v %v", injected, err)
			}
		})
	}
	t.Run("another grant's", func(t *testing.T) {
		s := open(t, dir, named(t, "other", "", "other.example.com"))
		_, err := s.Request(host, allowed, "/", auth("Bearer "+fake))
		if leak, ok := errors.AsType[*inject.Leak](err); !ok || leak.Secret != "github" {
			t.Error(err)
		}
	})
}

func TestPlaceholdersStayUntilTheSandboxIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, named(t, "github", "", host)).Environment()["GITHUB"]
	rotated := named(t, "github", "", host)
	rotated.Value = secret.New("another-value-of-another-length")
	s := open(t, dir, rotated)
	if again := s.Environment()["GITHUB"]; again != first {
		t.Errorf("%q became %q", first, again)
	}
	header := http.Header{"Authorization": {"Bearer " + first}}
	if _, err := s.Request(host, []string{"github"}, "/", header); err != nil || header.Get("Authorization") != "Bearer another-value-of-another-length" {
		t.Errorf("%v %v", err, header)
	}
	if got := s.Answers(host).Text("x another-value-of-another-length y"); strings.Contains(got, "another") || len(got) != len("x another-value-of-another-length y") {
		t.Errorf("%q", got)
	}
	if other := open(t, t.TempDir(), named(t, "github", "", host)).Environment()["GITHUB"]; other == first {
		t.Error("two sandboxes have one placeholder")
	}
}

func TestSecretsThatCannotBeUsedAreRefused(t *testing.T) {
	good := named(t, "github", "", host)
	for name, change := range map[string]func(*inject.Secret){
		"no host":    func(s *inject.Secret) { s.Hosts = nil },
		"a path":     func(s *inject.Secret) { s.Name = "../x" },
		"no header":  func(s *inject.Secret) { s.Header = "" },
		"host":       func(s *inject.Secret) { s.Header = "Host" },
		"line break": func(s *inject.Secret) { s.Header = "X\r\nY" },
		"no hole":    func(s *inject.Secret) { s.Form = "Bearer" },
		"short":      func(s *inject.Secret) { s.Value = secret.New("short") },
	} {
		s := good
		change(&s)
		if _, err := inject.Open(t.TempDir(), []inject.Secret{s}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzRequest: whatever a program writes, the value is in the one header or nowhere, and
// the placeholder leaves in no request that is allowed.
func FuzzRequest(f *testing.F) {
	f.Add("Bearer {}", "/", "x", true)
	f.Add("{}", "/{}", "a={}", true)
	f.Add("Basic {}", "/%7B%7D", "{}", false)
	f.Fuzz(func(t *testing.T, written, target, cookie string, bound bool) {
		s := open(t, t.TempDir(), named(t, "github", "", host))
		fake := s.Environment()["GITHUB"]
		to := host
		if !bound {
			to = "evil.example.com"
		}
		target = strings.ReplaceAll(target, "{}", fake)
		header := http.Header{"Authorization": {fill(written, fake)}, "Cookie": {strings.ReplaceAll(cookie, "{}", fake)}}
		injected, err := s.Request(to, []string{"github"}, target, header)
		if err != nil {
			return
		}
		sent := target + header.Get("Cookie")
		if !bound || !injected {
			sent += header.Get("Authorization")
		}
		if strings.Contains(sent, fake) || strings.Contains(sent, value) || injected && strings.Contains(header.Get("Authorization"), fake) || injected && !bound {
			t.Fatalf("to %s: %q %v", to, target, header)
		}
	})
}
