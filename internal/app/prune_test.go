package app_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Every sandbox is judged by the limits of its own agent, not by those of the
// session that happens to prune.
func TestPruneByTheLimitsOfItsOwnAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.set("agents.defaults.sandbox.prune", map[string]any{"idleHours": 10, "maxAgeDays": 0})
	s.set("agents.list", []any{
		map[string]any{"id": "usual", "default": true},
		map[string]any{"id": "hasty", "sandbox": map[string]any{"prune": map[string]any{"idleHours": 1}}},
		map[string]any{"id": "patient", "sandbox": map[string]any{"prune": map[string]any{"idleHours": 0}}},
		map[string]any{"id": "ageing", "sandbox": map[string]any{"prune": map[string]any{"idleHours": 0, "maxAgeDays": 2}}},
	})
	a := s.open()
	now := time.Now()
	a.Manager.Now = func() time.Time { return now }
	names := map[string]string{}
	for _, agent := range []string{"usual", "hasty", "patient", "ageing"} {
		got := s.provide(a, provide.Subject{SessionKey: "agent:" + agent + ":x"})
		names[got.Name] = agent
		got.Release()
	}
	for _, step := range []struct {
		pass time.Duration
		want []string
	}{
		{time.Minute, nil},
		{time.Hour, []string{"hasty"}},
		{9 * time.Hour, []string{"usual"}},
		{38 * time.Hour, []string{"ageing"}},
		{10000 * time.Hour, nil},
	} {
		now = now.Add(step.pass)
		removed, err := a.Prune(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		var gone []string
		for _, r := range removed {
			gone = append(gone, names[r.Entry.ContainerName])
			if r.Err != nil || s.engine.inspect(r.Entry.ContainerName) != nil {
				t.Errorf("%s is still there: %v", r.Entry.ContainerName, r.Err)
			}
		}
		slices.Sort(gone)
		if diff := cmp.Diff(step.want, gone); diff != "" {
			t.Errorf("%v later (-want +got):\n%s", step.pass, diff)
		}
	}
	if left := s.ours(); len(left) != 1 || names[left[0].name()] != "patient" {
		t.Errorf("left: %+v", left)
	}
}

// Private copies go only when asked for. The agent's own workspace is no copy,
// and nobody's to remove.
func TestPruneAndWorkspaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		access     string
		workspaces bool
		kept       bool // the file that the sandbox wrote
	}{{"none", false, true}, {"none", true, false}, {"rw", false, true}, {"rw", true, true}} {
		t.Run(fmt.Sprintf("%s %v", c.access, c.workspaces), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.set("agents.defaults.sandbox.workspaceAccess", c.access)
			a := s.open()
			got := s.provide(a, session("old"))
			sh(t, got, "echo x >file")
			got.Release()
			a.Manager.Now = func() time.Time { return time.Now().Add(10000 * time.Hour) }
			removed, err := a.Prune(t.Context(), c.workspaces)
			if err != nil || len(removed) != 1 || removed[0].Err != nil {
				t.Fatalf("pruned %+v, %v", removed, err)
			}
			if _, err := os.Stat(filepath.Join(got.Plan.Layout.WorkspaceDir, "file")); (err == nil) != c.kept {
				t.Errorf("its file: %v, want kept %v", err, c.kept)
			}
		})
	}
}

// Between the removal of a sandbox and that of its copy somebody may make the
// sandbox anew: then the copy is his.
func TestCopyOfASandboxMadeAnewStays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	got := s.provide(a, session("quick"))
	remove := func() error { t.Error("the copy would be gone"); return nil }
	if err := a.IfGone(t.Context(), got.Name, remove); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("while it is used: %v", err)
	}
	got.Release()
	if err := a.IfGone(t.Context(), got.Name, remove); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("while it is there: %v", err)
	}
	if err := a.Discard(t.Context(), got.Plan); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(got.Plan.Layout.SandboxDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("discarded, and its copy: %v", err)
	}
}

// A gateway prunes by itself, without a request that would have to wait for it.
func TestGatewayPrunes(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.set("agents.defaults.sandbox.prune", map[string]any{"idleHours": 1, "maxAgeDays": 0})
	a := s.open()
	defer a.Close()
	idle, used := s.provide(a, session("idle")), s.provide(a, session("used"))
	idle.Release()
	used.Release()
	s.age(a, idle.Name, time.Now().Add(-2*time.Hour))
	if err := a.Registry.SetFact(t.Context(), "last-prune", "0"); err != nil {
		t.Fatal(err)
	}
	s.gateway(time.Minute)
	eventually(t, "the sandbox that was not used for two hours is there", func() bool { return len(s.rows(a)) == 1 })
	if rows := s.rows(a); rows[0].ContainerName != used.Name {
		t.Errorf("%s is left", rows[0].ContainerName)
	}
}
