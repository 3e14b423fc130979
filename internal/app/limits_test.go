package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// A limit that somebody took away from a running sandbox is noticed when it is
// used again: while others work in it that is refused, and afterwards it is
// started with its limits. What it wrote is still there.
func TestLostLimitsAreNoticed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.set("agents.defaults.sandbox.backend", "linux")
	s.set("agents.defaults.sandbox.docker.image", "host")
	s.set("agents.defaults.sandbox.docker.pidsLimit", 64)
	a := s.open()
	first := s.provide(a, session("limits"))
	discardLater(t, a, first)
	inside(t, first, "touch left && echo $$")
	kept := limitsOf(t, a, first.Plan.Spec.Name)
	if len(kept) == 0 || kept[0].Limit != cgroups.Pids {
		t.Fatalf("limits %v, want that of processes first", kept)
	}
	raise := func() {
		if err := os.WriteFile(kept[0].File, []byte("max"), 0); err != nil {
			t.Fatal(err)
		}
	}
	raise()
	_, err := a.Provide(t.Context(), session("limits"), provide.Options{})
	if err == nil || !strings.Contains(err.Error(), "limits are not in force any more (limit of processes") {
		t.Errorf("used by another, without its limit: %v", err)
	}
	first.Release()

	again := s.provide(a, session("limits"))
	defer again.Release()
	inside(t, again, "test -e left")
	if now, err := os.ReadFile(kept[0].File); err != nil || strings.TrimSpace(string(now)) != kept[0].Value {
		t.Errorf("the limit is %q (%v), want %s", now, err, kept[0].Value)
	}
}

// A network of its own takes an engine. Without one nothing is made, also for a
// command that would not use it, and the setting is named.
func TestBridgeNeedsAnEngine(t *testing.T) {
	t.Parallel()
	s := pairSite(t)
	s.set("agents.defaults.sandbox.backend", "linux")
	a := s.open()
	_, err := a.Provide(t.Context(), session("pair"), provide.Options{Pair: true})
	if err == nil || !strings.Contains(err.Error(), "docker.network") {
		t.Errorf("both: %v", err)
	}
	if hint := errhint.Of(err); !strings.Contains(hint, "sandbox.egress") {
		t.Errorf("the hint is %q", hint)
	}
}

func inside(t *testing.T, in *provide.ReadySandbox, script string) {
	t.Helper()
	var out bytes.Buffer
	result, err := in.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", script}, Dir: "/workspace", Stdout: &out, Stderr: &out})
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("%s: %v, %v: %s", script, result, err, out.String())
	}
}

// limitsOf are those of a running sandbox, as its record has them.
func limitsOf(t *testing.T, a *app.App, name string) []cgroups.Kept {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.Paths.AtollState, "linux", name, "record.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Life struct{ Limits []cgroups.Kept }
	}
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	return record.Life.Limits
}
