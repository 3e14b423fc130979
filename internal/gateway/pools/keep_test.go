package pools

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// keeper is a runtime that keeps pools: it answers what the test says, and notes what it was
// asked.
type keeper struct {
	sandbox.Runtime
	counts []sandbox.PoolCount
	err    error
	asked  [][]sandbox.KeptPool
}

func (k *keeper) KeepPools(_ context.Context, pools []sandbox.KeptPool) ([]sandbox.PoolCount, error) {
	k.asked = append(k.asked, pools)
	if k.err != nil {
		return nil, k.err
	}
	return k.counts[:len(pools)], nil
}

// keptService is a service whose pools on Kubernetes another program keeps: that of main,
// of two sandboxes, and not that of host.
func keptService(t *testing.T, provider string) (*Service, *keeper) {
	t.Helper()
	parsed, err := config.Parse("atoll.json5", []byte(`{kubernetes: {provider: "`+provider+`"}}`), config.Environment{Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	s, _, _ := service(t, 2)
	k := &keeper{counts: []sandbox.PoolCount{{Ready: 1, Making: 1}}}
	s.In = &provide.Installation{
		Settings: &provide.Settings{Config: parsed}, Logger: slog.New(slog.DiscardHandler),
		Manager: &sandbox.Manager{Options: sandbox.Options{Runtime: func(context.Context, string) (sandbox.Runtime, error) { return k, nil }}},
	}
	s.Audit = func(*audit.PoolEvent) error { return nil }
	main, host := s.poolOf("main"), s.poolOf("host")
	main.backend, main.spec = provide.BackendKubernetes, &sandbox.Spec{AgentID: "main"}
	host.size, host.shape, host.backend, host.spec = 1, "shape", "linux", &sandbox.Spec{AgentID: "host"}
	return s, k
}

// TestKeepAll: KeepPools gets the pools of its backend only, the list of pools has the counts that
// it returns, and the gateway makes no sandboxes for them.
func TestKeepAll(t *testing.T) {
	s, k := keptService(t, "agent-sandbox")
	s.keepAll(t.Context(), true)
	if len(k.asked) != 1 || len(k.asked[0]) != 1 || k.asked[0][0].Size != 2 || k.asked[0][0].Spec.AgentID != "main" {
		t.Fatalf("asked %+v", k.asked)
	}
	p := s.pools["main"]
	if !p.kept || p.ready != 1 || p.making != 1 || s.missing("main", 0) != 0 || s.pools["host"].kept || s.missing("host", 0) != 1 {
		t.Errorf("%+v, %+v", p, s.pools["host"])
	}
	if fit, unfit := s.sort([]*sandbox.Entry{{AgentID: "main", ConfigHash: "shape", Phase: sandbox.PhaseReady}}); fit["main"] != 0 || len(unfit) != 1 || p.ready != 1 {
		t.Errorf("of those that the gateway made before %v fit, %v are to go", fit, unfit)
	}
}

// TestKeepAllAsksWhenNeeded: between full looks the keeper is asked only while a pool is not
// full, as after a claim.
func TestKeepAllAsksWhenNeeded(t *testing.T) {
	s, k := keptService(t, "agent-sandbox")
	k.counts[0] = sandbox.PoolCount{Ready: 2}
	s.keepAll(t.Context(), true)
	s.keepAll(t.Context(), false)
	if len(k.asked) != 1 {
		t.Errorf("a full pool: asked %d times", len(k.asked))
	}
	s.noteClaim(&sandbox.Spec{AgentID: "main"}, "pod-1")
	s.keepAll(t.Context(), false)
	if p := s.pools["main"]; len(k.asked) != 2 || p.claimed != 1 || p.ready != 2 {
		t.Errorf("after a claim: asked %d times, %+v", len(k.asked), p)
	}
	s.noteClaim(&sandbox.Spec{AgentID: "main"}, "")
	if p := s.pools["main"]; p.missed != 1 || p.claimed != 1 {
		t.Errorf("after a miss: %+v", p)
	}
}

// TestKeepAllResizes: the last pool that is resized to nothing is none that the keeper is to
// have, and shows none ready.
func TestKeepAllResizes(t *testing.T) {
	s, k := keptService(t, "agent-sandbox")
	s.keepAll(t.Context(), true)
	s.pools["main"].size = 0
	s.keepAll(t.Context(), true)
	if p := s.pools["main"]; len(k.asked) != 2 || len(k.asked[1]) != 0 || p.kept || p.ready != 0 || p.making != 0 {
		t.Errorf("asked %+v, %+v", k.asked, p)
	}
}

// TestKeepAllFails: a keeper that fails is asked again after a pause, with one line in the log,
// and a pool's own problem is shown.
func TestKeepAllFails(t *testing.T) {
	s, k := keptService(t, "agent-sandbox")
	k.err = errors.New("no definitions")
	s.keepAll(t.Context(), true)
	s.keepAll(t.Context(), false)
	p := s.pools["main"]
	if len(k.asked) != 1 || p.failures != 1 || p.why != "no definitions" || !p.kept || time.Until(p.retry) <= 0 {
		t.Errorf("asked %d times, %+v", len(k.asked), p)
	}
	k.err, k.counts[0], p.retry = nil, sandbox.PoolCount{Making: 2, Problem: "no pod is ready"}, time.Time{}
	s.keepAll(t.Context(), false)
	if p.failures != 0 || !strings.Contains(p.why, "no pod is ready") || p.making != 2 {
		t.Errorf("%+v", p)
	}
}

// TestKeepAllNobody: without a keeper in the configuration the gateway fills every pool.
func TestKeepAllNobody(t *testing.T) {
	s, k := keptService(t, "pods")
	s.keepAll(t.Context(), true)
	if len(k.asked) != 0 || s.pools["main"].kept || s.missing("main", 0) != 2 {
		t.Errorf("asked %+v, %+v", k.asked, s.pools["main"])
	}
}
