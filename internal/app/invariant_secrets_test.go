package app_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/scripted"
)

// logged keeps what the app logs.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// The two halves of the key: a search for it must not find the search.
const (
	keyBegin = "sk-real-0123456789"
	keyEnd   = "abcdefghij-of-the-upstream"
)

// lookInside searches everything that a process in the sandbox can read: files,
// the memory maps' names, arguments and environments of all processes.
const lookInside = `
printf '%s%s' "$1" "$2" > /tmp/pattern
find / -xdev -type f -size -4096k ! -path /tmp/pattern ! -path '/proc/*' ! -path '/sys/*' -exec grep -lF -f /tmp/pattern {} + 2>/dev/null
for p in /proc/[0-9]*; do
  for f in environ cmdline maps mountinfo; do
    if grep -qF -f /tmp/pattern $p/$f 2>/dev/null; then echo $p/$f; fi
  done
done
rm /tmp/pattern
echo searched
`

// TestInvariant_SECRETS_HOST_ONLY has a program in a sandbox without a network
// call a model, and looks for the key everywhere but in the process that holds
// it. It was seen to fail with the key in place of noKey in ModelEnv.
func TestInvariant_SECRETS_HOST_ONLY(t *testing.T) {
	key := keyBegin + keyEnd
	model, err := scripted.Listen(t.Context(), "tcp", "127.0.0.1:0", scripted.Script{scripted.Say("the answer of the model")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	s := newSite(t)
	s.env["UPSTREAM_KEY"] = key
	s.set("llm.providers.test", map[string]any{"kind": "openai", "url": strings.TrimSuffix(model.BaseURL(), "/v1"), "keys": []any{map[string]any{"env": "UPSTREAM_KEY"}}})
	s.set("llm.prices.good", map[string]any{"input": 1, "output": 10})
	log := &logged{}
	a, err := app.Open(t.Context(), app.Options{Getenv: s.getenv, ConfigPath: s.configFile(), Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	in := s.provide(a, session("keys"))
	found := callModel(t, a, in)
	if found != "searched" {
		t.Errorf("inside, the key is in:\n%s", found)
	}
	a.Close() // everything is written now
	holds(t, s.state, key)
	if strings.Contains(log.text.String(), key) {
		t.Error("the key was logged")
	}
	commandLines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range commandLines {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(key)) {
			t.Errorf("the key is in %s", path)
		}
	}
}

// callModel calls the model from inside, under a grant, and searches.
func callModel(t *testing.T, a *app.App, in *app.Session) string {
	t.Helper()
	models, err := a.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer models.Close()
	terms, err := app.Terms(in.Plan, "account-1", []string{"good"})
	if err != nil {
		t.Fatal(err)
	}
	terms.Run, terms.Until = "run-1", time.Now().Add(time.Hour)
	g, err := models.Grant(t.Context(), in, terms)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	const ask = `wget -q -O - --header 'Content-Type: application/json' --post-data '{"model":"good","stream":true,"messages":[{"role":"user","content":"hello"}]}' http://127.0.0.1:8080/v1/chat/completions`
	if out := underGrant(t, in, g.ID(), ask); !strings.Contains(out, "[DONE]") {
		t.Fatalf("the model did not answer: %s", out)
	}
	if out := underGrant(t, in, "", ask+" || echo refused"); !strings.Contains(out, "refused") {
		t.Errorf("a process of no run was served: %s", out)
	}
	return underGrant(t, in, g.ID(), lookInside)
}

func underGrant(t *testing.T, in *app.Session, grant, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var out bytes.Buffer
	_, err := in.Machine.Exec(ctx, &machine.Command{
		Argv: []string{"/bin/sh", "-c", script, "sh", keyBegin, keyEnd}, Dir: "/", Grant: grant,
		Env: app.CommandEnv(in.Plan, app.ModelEnv()), Stdout: &out, Stderr: &out, Timeout: 2 * patience,
	})
	if err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// holds looks for the key in every file below dir.
func holds(t *testing.T, dir, key string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if bytes.Contains(content, []byte(key)) {
			t.Errorf("the key is in %s", path)
		}
		return nil
	})
	if err != nil || files < 4 {
		t.Errorf("%d files were searched: %v", files, err)
	}
}
