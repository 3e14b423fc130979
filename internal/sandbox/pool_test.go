package sandbox_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// shapedSpec is a sandbox that may come out of a pool.
func (y *yard) shapedSpec(name string) *sandbox.Spec {
	spec := y.spec(name)
	spec.Hostname = sandbox.PoolHostname
	spec.Mounts[0].Target, spec.Workdir = "/workspace", "/"
	return spec
}

// 200 times, four processes claim one sandbox at once: one gets it.
func TestTwoHundredClaimRaces(t *testing.T) {
	y := newYard(t)
	managers := []*sandbox.Manager{y.manager(), y.manager(), y.manager(), y.manager()}
	spec := y.shapedSpec("race")
	for round := range 200 {
		// What is claimed is a row: no sandbox need be there.
		row := &sandbox.Entry{ContainerName: fmt.Sprintf("pool-%d", round), SessionKey: "pool", Kind: sandbox.KindPool, Phase: sandbox.PhaseReady,
			Backend: "test", AgentID: spec.AgentID, ConfigHash: sandbox.Shape(spec)}
		if err := managers[0].Registry.Put(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		var won atomic.Int32
		var wg sync.WaitGroup
		for _, m := range managers {
			wg.Go(func() {
				claim, err := m.Reserve(t.Context(), spec)
				if err != nil {
					t.Error(err)
				}
				if claim != nil {
					won.Add(1)
					defer claim.Release(t.Context())
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d claims", round, won.Load())
		}
	}
}

// A sandbox that was claimed is one of the shape only while nothing else was changed.
func TestShape(t *testing.T) {
	y := newYard(t)
	spec := y.shapedSpec("a")
	shape := sandbox.Shape(spec)
	same := map[string]func(*sandbox.Spec){
		"name":        func(s *sandbox.Spec) { s.Name = "b" },
		"scope key":   func(s *sandbox.Spec) { s.ScopeKey = "agent:main:b" },
		"account":     func(s *sandbox.Spec) { s.Account = "acme" },
		"environment": func(s *sandbox.Spec) { s.Env = map[string]string{"A": "b"} },
		"workspace":   func(s *sandbox.Spec) { s.Mounts[0].Source = "/elsewhere" },
		"empty lists": func(s *sandbox.Spec) { s.DNS, s.Volumes = []string{}, []sandbox.Volume{} },
	}
	other := map[string]func(*sandbox.Spec){
		"image":   func(s *sandbox.Spec) { s.Image = "another" },
		"user":    func(s *sandbox.Spec) { s.User = "7:7" },
		"memory":  func(s *sandbox.Spec) { s.Limits.Memory = 1 << 30 },
		"network": func(s *sandbox.Spec) { s.Network = "bridge" },
		"mounts": func(s *sandbox.Spec) {
			s.Mounts = append(s.Mounts, sandbox.Mount{Source: "/srv", Target: "/srv", Kind: sandbox.MountBind})
		},
		"backend":  func(s *sandbox.Spec) { s.Backend = "docker" },
		"hostname": func(s *sandbox.Spec) { s.Hostname = "" },
		"seccomp":  func(s *sandbox.Spec) { s.SeccompProfile = "/profile.json" },
	}
	for name, change := range same {
		if s := y.shapedSpec("a"); sandbox.Shape(changed(s, change)) != shape {
			t.Errorf("%s makes another shape", name)
		}
	}
	for name, change := range other {
		if s := y.shapedSpec("a"); sandbox.Shape(changed(s, change)) == shape {
			t.Errorf("%s makes no other shape", name)
		}
	}
}

func changed(s *sandbox.Spec, change func(*sandbox.Spec)) *sandbox.Spec {
	change(s)
	return s
}

// What needs to know whose it is when it is made does not wait in a pool.
func TestUnpoolable(t *testing.T) {
	y := newYard(t)
	for name, change := range map[string]func(*sandbox.Spec){
		"named":    func(s *sandbox.Spec) { s.Hostname = "" },
		"set up":   func(s *sandbox.Spec) { s.SetupCommand = "true" },
		"browser":  func(s *sandbox.Spec) { s.Kind = sandbox.KindBrowser },
		"half":     func(s *sandbox.Spec) { s.NetworkedHalf = true },
		"joined":   func(s *sandbox.Spec) { s.Network = "container:web" },
		"overlay":  func(s *sandbox.Spec) { s.Mounts[0].Overlay = &sandbox.OverlayMount{} },
		"on host":  func(s *sandbox.Spec) { s.Mounts[0].Enclosed = false },
		"own root": func(s *sandbox.Spec) {},
	} {
		spec := y.shapedSpec("a")
		spec.Mounts[0].Enclosed = true
		m := y.manager(func(o *sandbox.Options) {
			if name == "own root" {
				o.TrustedRoots = func(*sandbox.Spec) (string, error) { return "/roots.pem", nil }
			}
		})
		if why, err := m.Unpoolable(t.Context(), spec); (why == "") != (name != "own root") || err != nil {
			t.Errorf("%s: %q, %v", name, why, err)
		}
		if why, err := m.Unpoolable(t.Context(), changed(spec, change)); why == "" || err != nil {
			t.Errorf("%s: may wait in a pool, %v", name, err)
		}
	}
}
