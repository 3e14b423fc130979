package github_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/relay/github"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/testkit/relaytest"
)

const token = "ghp_canary0123456789"

func pull() *github.Pull {
	return &github.Pull{Owner: "org", Repo: "project", Head: "sandbox/work", Base: "main", Title: "Work", Body: "first", Labels: []string{"agent"}, Draft: true}
}

// client notes how long it would have waited.
func client(server *relaytest.GitHub) (*github.Client, *[]time.Duration) {
	var waits []time.Duration
	return &github.Client{Base: server.URL, Wait: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}}, &waits
}

func TestOnePullRequestPerBranch(t *testing.T) {
	server := relaytest.NewGitHub(t, token, "org/project")
	c, _ := client(server)
	first, err := c.Ensure(t.Context(), secret.New(token), pull())
	if err != nil || !first.New {
		t.Fatalf("%+v, %v", first, err)
	}
	again := pull()
	again.Body, again.Title = "second", "Another title"
	second, err := c.Ensure(t.Context(), secret.New(token), again)
	if err != nil || second.New || second.Number != first.Number || second.URL != first.URL {
		t.Fatalf("%+v, %v", second, err)
	}
	pulls := server.Pulls()
	if len(pulls) != 1 || !strings.Contains(pulls[0].Body, "second") || strings.Contains(pulls[0].Body, pull().Body) || pulls[0].Title != "Work" || !pulls[0].Draft || len(pulls[0].Labels) != 1 {
		t.Errorf("%+v", pulls)
	}
}

func TestClosedPullRequestIsNotOpenedAgain(t *testing.T) {
	server := relaytest.NewGitHub(t, token, "org/project")
	server.Add(relaytest.Pull{Repo: "org/project", Head: "sandbox/work", Base: "main", State: "closed"})
	c, _ := client(server)
	got, err := c.Ensure(t.Context(), secret.New(token), pull())
	if err != nil || !got.New || got.Number != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A server that ignores the filter lists many, on several pages.
func TestPages(t *testing.T) {
	server := relaytest.NewGitHub(t, token, "org/project")
	for i := range 250 {
		server.Add(relaytest.Pull{Repo: "org/project", Head: fmt.Sprintf("other-%d", i), Base: "main", State: "open"})
	}
	server.Add(relaytest.Pull{Repo: "org/project", Head: "sandbox/work", Base: "main", State: "open"})
	server.Trouble = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		query := r.URL.Query()
		query.Del("head")
		r.URL.RawQuery = query.Encode()
		return false
	}
	c, _ := client(server)
	got, err := c.Ensure(t.Context(), secret.New(token), pull())
	if err != nil || got.New || got.Number != 251 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Somebody opens the pull request between our look and our request.
func TestRace(t *testing.T) {
	server := relaytest.NewGitHub(t, token, "org/project")
	server.Trouble = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Method == http.MethodPost && len(server.Pulls()) == 0 {
			server.Add(relaytest.Pull{Repo: "org/project", Head: "sandbox/work", Base: "main", State: "open"})
		}
		return false
	}
	c, _ := client(server)
	got, err := c.Ensure(t.Context(), secret.New(token), pull())
	if err != nil || got.New || len(server.Pulls()) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTrouble(t *testing.T) {
	limited := func(header, value string, status int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set(header, value)
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.WriteHeader(status)
			fmt.Fprint(w, `{"message":"You have exceeded a secondary rate limit"}`)
		}
	}
	for _, test := range []struct {
		name   string
		answer func(http.ResponseWriter)
		waits  []time.Duration
		fails  error
	}{
		{"server error", func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, []time.Duration{2 * time.Second}, nil},
		{"secondary limit", limited("Retry-After", "7", http.StatusForbidden), []time.Duration{7 * time.Second}, nil},
		{"too many requests", limited("Retry-After", "3", http.StatusTooManyRequests), []time.Duration{3 * time.Second}, nil},
		{"a long wait", limited("Retry-After", "3600", http.StatusForbidden), nil, github.ErrLimited},
		{"limit until later", limited("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(time.Hour).Unix()), http.StatusForbidden), nil, github.ErrLimited},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := relaytest.NewGitHub(t, token, "org/project")
			server.Trouble = func(w http.ResponseWriter, _ *http.Request, n int) bool {
				if n == 1 {
					test.answer(w)
				}
				return n == 1
			}
			c, waits := client(server)
			_, err := c.Ensure(t.Context(), secret.New(token), pull())
			if !errors.Is(err, test.fails) || fmt.Sprint(*waits) != fmt.Sprint(test.waits) {
				t.Errorf("%v, waited %v, want %v", err, *waits, test.waits)
			}
		})
	}
}

// A server that always fails is asked so often and no more, and what it says
// does not carry the token on.
func TestErrorsEnd(t *testing.T) {
	server := relaytest.NewGitHub(t, token, "org/project")
	server.Trouble = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"message":"cannot serve %s"}`, r.Header.Get("Authorization"))
		return true
	}
	c, waits := client(server)
	_, err := c.Ensure(t.Context(), secret.New(token), pull())
	if err == nil || strings.Contains(err.Error(), "canary") || len(*waits) != 3 || len(server.Requests()) != 4 {
		t.Errorf("%v, %d waits, %d requests", err, len(*waits), len(server.Requests()))
	}
}

func TestRefusals(t *testing.T) {
	server := relaytest.NewGitHub(t, token, "org/project")
	c, waits := client(server)
	if _, err := c.Ensure(t.Context(), secret.New("wrong-canary"), pull()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Error(err)
	}
	unknown := pull()
	unknown.Repo = "nothere"
	if _, err := c.Ensure(t.Context(), secret.New(token), unknown); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	if len(*waits) != 0 {
		t.Errorf("waited %v", *waits)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	server := relaytest.NewGitHub(t, token, "org/project")
	c := &github.Client{Base: relaytest.Redirect(t, server.URL)}
	if _, err := c.Ensure(t.Context(), secret.New(token), pull()); err == nil || len(server.Requests()) != 0 {
		t.Errorf("%v, %v", err, server.Requests())
	}
}

func TestLongTextsAreCut(t *testing.T) {
	server := relaytest.NewGitHub(t, token, "org/project")
	c, _ := client(server)
	long := pull()
	long.Title, long.Body = strings.Repeat("ä", 5000)+"\nsecond line", strings.Repeat("ä", 200_000)
	if _, err := c.Ensure(t.Context(), secret.New(token), long); err != nil {
		t.Error(err)
	}
}

func TestAppToken(t *testing.T) {
	hub := relaytest.NewGitHub(t, "none", "org/project")
	server := relaytest.NewApp(t, hub, "4711", 7)
	app := &github.App{Client: &github.Client{Base: server.URL}, ID: "4711", Installation: 7, Key: keyFile(t, server.Key)}
	value, done, err := app.Token(t.Context(), "org", "project")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := client(hub)
	if _, err := c.Ensure(t.Context(), value, pull()); err != nil {
		t.Error(err)
	}
	if fmt.Sprint(server.Asked) != "[[project]]" {
		t.Errorf("the token is for %v", server.Asked)
	}
	text := secret.New(value.Reveal())
	if err := done(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.Ensure(t.Context(), text, pull()); err == nil {
		t.Error("the token lives on")
	}
	app.ID = "4712"
	if _, _, err := app.Token(t.Context(), "org", "project"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("another app: %v", err)
	}
	app.Key = keyFile(t, "-----BEGIN PRIVATE KEY-----\nnonsense\n")
	if _, _, err := app.Token(t.Context(), "org", "project"); err == nil || strings.Contains(err.Error(), "nonsense") {
		t.Errorf("no key: %v", err)
	}
}

func keyFile(t *testing.T, text string) secret.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return secret.PEM{Path: path}
}
