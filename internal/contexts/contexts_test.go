package contexts_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/contexts"
)

func load(t *testing.T, state string) *contexts.Contexts {
	t.Helper()
	c, err := contexts.Load(state)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestContextsAreKept(t *testing.T) {
	state := filepath.Join(t.TempDir(), "new")
	for name, address := range map[string]string{"work": "https://atoll.example.org", "local": "http://127.0.0.1:18789"} {
		if err := load(t, state).Add(name, contexts.Context{URL: address, Token: "secret-" + name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := load(t, state).Use("work"); err != nil {
		t.Fatal(err)
	}
	c := load(t, state)
	if got := strings.Join(c.Names(), " "); got != "local work" || c.Current != "work" || c.Contexts["work"].Token != "secret-work" {
		t.Errorf("%s %+v", got, c)
	}
	if info, err := os.Stat(filepath.Join(state, "contexts.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := c.Remove("work"); err != nil {
		t.Fatal(err)
	}
	if c := load(t, state); c.Current != "" || len(c.Contexts) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestResolve(t *testing.T) {
	c := load(t, t.TempDir())
	none := func(string) string { return "" }
	if _, err := c.Resolve("", none); !errors.Is(err, contexts.ErrNone) {
		t.Error(err)
	}
	if err := c.Add("first", contexts.Context{URL: "https://first.example", Token: "one"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Add("second", contexts.Context{URL: "https://second.example", Token: "two"}); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{"ATOLL_GATEWAY_URL": "https://env.example", "ATOLL_GATEWAY_TOKEN": "three"}[name]
	}
	for _, r := range []struct {
		named string
		env   func(string) string
		want  string
	}{
		{"", none, "https://first.example one"},
		{"second", env, "https://second.example two"},
		{"", env, "https://env.example three"},
		{"https://flag.example", env, "https://flag.example three"},
		{"https://flag.example", none, "https://flag.example "},
	} {
		got, err := c.Resolve(r.named, r.env)
		if text := got.URL + " " + got.Token; err != nil || text != r.want {
			t.Errorf("%q: %q %v, want %q", r.named, text, err, r.want)
		}
	}
	if _, err := c.Resolve("third", env); err == nil || !strings.Contains(err.Error(), "third") {
		t.Error(err)
	}
}

func TestContextsThatAreRefused(t *testing.T) {
	state := t.TempDir()
	c := load(t, state)
	for name, to := range map[string]contexts.Context{
		"../x": {URL: "https://a.example"}, "": {URL: "https://a.example"}, "a": {URL: "ftp://a.example"}, "b": {URL: "https://user:pw@a.example"},
		"c": {URL: "http://a.example"}, "d": {URL: "https://a.example", Token: "a\nb"}, "e": {URL: "https://a.example", Token: strings.Repeat("x", contexts.MaxToken+1)}, "f": {URL: "nonsense"},
	} {
		if err := c.Add(name, to); err == nil {
			t.Errorf("%q %+v was taken", name, to)
		}
	}
	if err := c.Add("trusted", contexts.Context{URL: "http://10.0.0.1:18789", TrustedNetwork: true}); err != nil {
		t.Error(err)
	}
	for i := len(c.Contexts); i < contexts.Most; i++ {
		c.Contexts[fmt.Sprint("n", i)] = contexts.Context{}
	}
	if err := c.Add("more", contexts.Context{URL: "https://a.example"}); err == nil {
		t.Error("one too many was taken")
	}
	if err := os.Chmod(filepath.Join(state, "contexts.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := contexts.Load(state); err == nil || !strings.Contains(err.Error(), "others can read it") {
		t.Error(err)
	}
}
