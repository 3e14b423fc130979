package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// The configuration asks for another engine. What is in use, or was a moment
// ago, stays where it is; later it moves, and nothing is left where it was.
func TestBackendChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.env["CONTAINER_HOST"] = enginetest.Podman(t)
	podman := &site{t: t, state: s.state, engine: newEngineAPI(t, s.env["CONTAINER_HOST"])}
	t.Cleanup(podman.clear)

	past := func() time.Time { return time.Now().Add(-sandbox.HotWindow - time.Second) }
	a := s.open()
	first := s.provide(a, session("moves"))
	first.Release()
	a.Close()

	s.set("agents.defaults.sandbox.backend", "podman")
	resident := s.open()
	for range 2 { // the second time over the wire that the first has opened
		hot := s.provide(resident, session("moves"))
		if hot.Created || !strings.Contains(strings.Join(hot.Notices, "\n"), "atoll sandbox recreate") {
			t.Errorf("just used: created %v, notices %q", hot.Created, hot.Notices)
		}
		hot.Release()
	}
	if on, off := len(s.ours()), len(podman.ours()); on != 1 || off != 0 {
		t.Fatalf("just used: %d on Docker, %d on Podman", on, off)
	}
	s.age(resident, first.Name, past())
	cold := s.provide(resident, session("moves"))
	if !cold.Created || len(s.ours()) != 0 || len(podman.ours()) != 1 {
		t.Fatalf("later: created %v, %d on Docker, %d on Podman", cold.Created, len(s.ours()), len(podman.ours()))
	}
	sh(t, cold, "true")
	cold.Release()

	s.set("agents.defaults.sandbox.backend", "auto")
	auto := s.open()
	kept := s.provide(auto, session("moves"))
	if kept.Created || kept.Plan.Spec.Backend != "podman" {
		t.Errorf("left open: created %v on %s", kept.Created, kept.Plan.Spec.Backend)
	}
	kept.Release()
	for _, a := range []*app.App{resident, auto} {
		a.Manager.Close()
	}
	if err := auto.Discard(t.Context(), kept.Plan); err != nil {
		t.Error(err)
	}
	if on, off := len(s.ours()), len(podman.ours()); on != 0 || off != 0 {
		t.Errorf("in the end: %d on Docker, %d on Podman", on, off)
	}
}

// age makes the last use of a sandbox look older.
func (s *site) age(a *app.App, name string, lastUsed time.Time) {
	s.t.Helper()
	row, err := a.Manager.Registry.Get(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	row.LastUsedAtMs = lastUsed.UnixMilli()
	row.CreatedAtMs = min(row.CreatedAtMs, row.LastUsedAtMs)
	if err := a.Manager.Registry.Put(s.t.Context(), row); err != nil {
		s.t.Fatal(err)
	}
}
