package app_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/app"
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
		got := s.provide(a, app.Who{SessionKey: "agent:" + agent + ":x"})
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
