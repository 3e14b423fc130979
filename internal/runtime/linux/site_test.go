package linux_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// site is a runtime with a state directory of its own.
type site struct {
	sandbox.Runtime
	t     *testing.T
	state string
}

func newSite(t *testing.T) *site {
	t.Helper()
	state, err := os.MkdirTemp("", "atoll") //nolint:usetesting // a short path, for sockets
	if err != nil {
		t.Fatal(err)
	}
	l := &site{open(t, state), t, state}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		left, err := l.List(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, s := range left {
			if i, err := l.Open(ctx, s.Name); err != nil || i.Remove(ctx) != nil {
				t.Errorf("%s is left: %v", s.Name, err)
			}
		}
		_ = os.RemoveAll(state)
	})
	return l
}

// dir makes a directory that every user may work in.
func (l *site) dir(name string) string {
	l.t.Helper()
	path := filepath.Join(l.state, name)
	if err := os.MkdirAll(path, 0o777); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		l.t.Fatal(err)
	}
	return path
}

func (l *site) spec(changes ...func(*sandbox.Spec)) *sandbox.Spec {
	s := &sandbox.Spec{
		Name: "atoll-test-" + strings.ToLower(rand.Text()[:10]), ScopeKey: "agent:test", AgentID: "test", ConfigHash: "hash",
		Image: rootfs.HostName, Workdir: "/", ReadOnlyRoot: true, Network: "none", CapDrop: []string{"ALL"}, Tmpfs: []sandbox.Tmpfs{{Target: "/tmp"}},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// needs leaves the test out if this user cannot have such a sandbox.
func (l *site) needs(changes ...func(*sandbox.Spec)) {
	l.t.Helper()
	for _, gap := range l.Check(l.t.Context(), l.spec(changes...)) {
		need.Missing(l.t, errors.New(gap.Field+": "+gap.Reason))
	}
}

func (l *site) start(changes ...func(*sandbox.Spec)) sandbox.Instance {
	l.t.Helper()
	i, err := l.Create(l.t.Context(), l.spec(changes...))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := i.Start(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	return i
}

// sh runs a script inside and returns what it prints.
func (l *site) sh(i sandbox.Instance, script string) string {
	l.t.Helper()
	out, code := l.try(i, script)
	if code != 0 {
		l.t.Fatalf("%s: exit code %d: %s", script, code, out)
	}
	return out
}

func (l *site) try(i sandbox.Instance, script string) (string, int) {
	l.t.Helper()
	m := machine.New(i.Dial, nil)
	defer m.Close()
	var out bytes.Buffer
	res, err := m.Exec(l.t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		l.t.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(out.String()), res.ExitCode
}

// replaceNumber puts another number behind a key of a JSON text.
func replaceNumber(t *testing.T, text, key string, n int) string {
	t.Helper()
	before, after, ok := strings.Cut(text, key)
	if !ok {
		t.Fatalf("%s is not in %s", key, text)
	}
	return before + key + strconv.Itoa(n) + strings.TrimLeft(after, "0123456789")
}
