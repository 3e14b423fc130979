package dashboard_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/dashboard"
)

// get asks the pages, before a handler that answers 418.
func get(t *testing.T, method, path string, header map[string]string) *http.Response {
	t.Helper()
	h, err := dashboard.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, path, nil)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The page and all that it names are served, with headers that confine it.
func TestPage(t *testing.T) {
	page := get(t, http.MethodGet, dashboard.Prefix, nil)
	text := body(t, page)
	if page.StatusCode != http.StatusOK || page.Header.Get("Content-Type") != "text/html; charset=utf-8" || page.Header.Get("Cache-Control") != "no-cache" {
		t.Fatalf("%d %v", page.StatusCode, page.Header)
	}
	for _, directive := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "form-action 'none'"} {
		if !strings.Contains(page.Header.Get("Content-Security-Policy"), directive) {
			t.Errorf("the policy has no %s", directive)
		}
	}
	if allowed := page.Header.Values("Service-Worker-Allowed"); len(allowed) > 0 {
		t.Errorf("a worker may stand before the pages: %v", allowed)
	}
	names := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(text, -1)
	if len(names) < 3 {
		t.Fatalf("the page names %v", names)
	}
	for _, name := range names {
		f := get(t, http.MethodGet, name[1], map[string]string{"Accept-Encoding": "gzip"})
		if f.StatusCode != http.StatusOK || f.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d %v", name[1], f.StatusCode, f.Header)
		}
		if strings.Contains(name[1], "/assets/") && !strings.Contains(f.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s may be kept: %s", name[1], f.Header.Get("Cache-Control"))
		}
		if plain := body(t, get(t, http.MethodGet, name[1], nil)); strings.Contains(plain, "http://") && !strings.Contains(plain, "www.w3.org") {
			t.Errorf("%s names another site", name[1])
		}
	}
}

// Only exact names are files; everything else is not found or is another's.
func TestOtherPaths(t *testing.T) {
	html := map[string]string{"Accept": "text/html"}
	for _, c := range []struct {
		method, path string
		header       map[string]string
		want         int
	}{
		{http.MethodGet, "/ui", nil, http.StatusSeeOther},
		{http.MethodGet, "/", html, http.StatusSeeOther},
		{http.MethodGet, "/", nil, http.StatusTeapot},
		{http.MethodPost, "/", html, http.StatusTeapot},
		{http.MethodGet, "/api/v1/me", html, http.StatusTeapot},
		{http.MethodGet, "/uix", html, http.StatusTeapot},
		{http.MethodPost, "/ui/", nil, http.StatusMethodNotAllowed},
		{http.MethodGet, "/ui/runs", html, http.StatusNotFound},
		{http.MethodGet, "/ui/..%2fapi", html, http.StatusNotFound},
		{http.MethodGet, "/ui/../api/v1/me", html, http.StatusNotFound},
		{http.MethodGet, "/ui/%2e%2e/api/v1/me", html, http.StatusNotFound},
		{http.MethodGet, "/%2fui/", html, http.StatusTeapot},
		{http.MethodGet, "/ui/;index.html", html, http.StatusNotFound},
		{http.MethodGet, "/ui/index.html%00", html, http.StatusNotFound},
		{http.MethodGet, "/ui/sw.js", html, http.StatusNotFound},
		{http.MethodGet, "/ui//index.html", html, http.StatusNotFound},
		{http.MethodGet, "/ui/index.html.gz", html, http.StatusNotFound},
		{http.MethodGet, "/ui/assets/", html, http.StatusNotFound},
		{http.MethodGet, "/ui/" + strings.Repeat("a", 5000), html, http.StatusNotFound},
	} {
		if got := get(t, c.method, c.path, c.header).StatusCode; got != c.want {
			t.Errorf("%s %.60s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
}

// The page of terminals may have styles in its text, and nothing else that others may not.
func TestTerminalPage(t *testing.T) {
	page := get(t, http.MethodGet, dashboard.Prefix, nil).Header.Get("Content-Security-Policy")
	terminal := get(t, http.MethodGet, dashboard.Prefix+"terminal.html", nil)
	policy := terminal.Header.Get("Content-Security-Policy")
	if terminal.StatusCode != http.StatusOK || strings.Contains(page, "unsafe") || strings.Replace(policy, " 'unsafe-inline'", "", 1) != page || !strings.Contains(policy, "style-src 'self' 'unsafe-inline'") {
		t.Errorf("%d %s", terminal.StatusCode, policy)
	}
}

// firstBytes is how much script, compressed, a browser loads before the first page.
const firstBytes = 60_000

// The first page loads little: pages that are opened later are loaded then.
func TestFirstPageIsSmall(t *testing.T) {
	text := body(t, get(t, http.MethodGet, dashboard.Prefix, nil))
	total := 0
	for _, name := range regexp.MustCompile(`(?:src|href)="(/ui/assets/[^"]+\.js)"`).FindAllStringSubmatch(text, -1) {
		total += len(body(t, get(t, http.MethodGet, name[1], map[string]string{"Accept-Encoding": "gzip"})))
	}
	t.Logf("%d bytes", total)
	if total < 1000 || total > firstBytes {
		t.Errorf("%d bytes of script, want at most %d", total, firstBytes)
	}
}
