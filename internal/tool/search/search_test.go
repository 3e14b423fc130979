package search_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool/search"
)

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func TestSearxng(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/search" || r.URL.Query().Get("format") != "json" {
			http.NotFound(w, r)
		}
		fmt.Fprintf(w, `{"query":"x","results":[{"title":"T","url":"https://a","content":%q,"score":1},{"title":"U","url":"https://b"}]}`, r.URL.Query().Get("q"))
	})
	engine, err := search.New(search.Options{Provider: "SearXNG", BaseURL: url + "/base/"})
	if err != nil {
		t.Fatal(err)
	}
	hits, err := engine.Search(t.Context(), nil, "a & b", 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]search.Hit{{Title: "T", URL: "https://a", Snippet: "a & b"}, {Title: "U", URL: "https://b"}}, hits); diff != "" {
		t.Error(diff)
	}
	if one, _ := engine.Search(t.Context(), nil, "x", 1); len(one) != 1 {
		t.Errorf("%d hits of one", len(one))
	}
}

func TestWhatIsMissing(t *testing.T) {
	cases := []struct {
		name string
		o    search.Options
		want string
	}{
		{"nothing", search.Options{}, "not configured"},
		{"unknown", search.Options{Provider: "grok"}, "not known"},
		{"no key", search.Options{Provider: "brave"}, "needs a key"},
		{"no place", search.Options{Provider: "searxng"}, "no usual place"},
		{"not a place", search.Options{Provider: "searxng", BaseURL: "nowhere"}, "not an address"},
		{"key in the open", search.Options{Provider: "brave", Key: "sesame", BaseURL: "http://x"}, "unprotected"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := search.New(c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error()+errhint.Of(err), "sesame") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOddAnswers(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("q") {
		case "redirect":
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		case "error":
			http.Error(w, "secret details", http.StatusTooManyRequests)
		case "nonsense":
			fmt.Fprint(w, "<html>")
		case "long":
			fmt.Fprint(w, strings.Repeat(" ", 3<<20))
		case "slow":
			<-r.Context().Done()
		default:
			fmt.Fprint(w, "{}")
		}
	})
	engine, err := search.New(search.Options{Provider: "searxng", BaseURL: url, Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"redirect", "error", "nonsense", "long", "slow", strings.Repeat("q", 2000)} {
		if _, err := engine.Search(t.Context(), nil, query, 1); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), query) && query == "slow" {
			t.Errorf("%.20s: %v", query, err)
		}
	}
	if hits, err := engine.Search(t.Context(), nil, "none", 1); err != nil || len(hits) != 0 {
		t.Errorf("got %v, %v", hits, err)
	}
}
