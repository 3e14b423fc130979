package rule_test

import (
	"net/url"
	pathpkg "path"
	"strings"
	"testing"
)

func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"api.example.com", "GET", "/repos/acme/x"}, {"a.example.net", "POST", "/x"}, {"git.example.com", "GET", "/x/info/refs?service=git-receive-pack"},
		{"api.example.com", "GET", "/repos/acme/%2e%2e/x"}, {"127.1", "GET", "/"}, {"api.example.com.", "HEAD", "/repos/acme/;x"},
	} {
		f.Add(seed[0], 443, seed[1], seed[2])
	}
	p := compile(f, `{ mode: "enforce", deny: ["bad.example.net"], allow: [{ host: "api.example.com", methods: ["GET"], paths: ["/repos/acme/**"] }, { host: "*.example.net" }, { host: "git.example.com", git: "read" }] }`, nil)
	f.Fuzz(func(t *testing.T, name string, port int, method, target string) {
		d := p.Request(name, port, method, target)
		if e, err := p.Explain(method, "https://"+name+target); err == nil && !e.Allow && e.Reason == "" {
			t.Error("an explanation without a reason")
		}
		if !d.Allow {
			if d.Reason == "" {
				t.Errorf("%s %s:%d %s is denied without a reason", method, name, port, target)
			}
			return
		}
		if port != 443 || d.Rule == "" || d.Ask {
			t.Errorf("%s %s:%d %s: %+v", method, name, port, target, d)
		}
		checkAllowed(t, name, method, target)
	})
}

// checkAllowed says again, in other words, what the policy of FuzzRequest allows.
func checkAllowed(t *testing.T, name, method, target string) {
	t.Helper()
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	path, query, _ := strings.Cut(target, "?")
	good := strings.HasSuffix(name, ".example.net") && name != "bad.example.net"
	switch name {
	case "api.example.com":
		u, err := url.Parse("https://x" + target)
		good = method == "GET" && err == nil && (u.Path == "/repos/acme" || strings.HasPrefix(pathpkg.Clean(u.Path), "/repos/acme"))
	case "git.example.com":
		good = method == "POST" && strings.HasSuffix(path, "/git-upload-pack") || strings.HasSuffix(path, "/info/refs") && strings.Contains(query, "upload-pack") && !strings.Contains(query, "receive-pack")
	}
	if !good {
		t.Errorf("%s https://%s%s is allowed", method, name, target)
	}
}
