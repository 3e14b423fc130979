package linux_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// BenchmarkUsage measures one sandbox, as the dashboard does each second.
func BenchmarkUsage(b *testing.B) {
	state := b.TempDir()
	roots, err := rootfs.Open(filepath.Join(state, "images"), rootfs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	rt, err := linux.New(linux.Options{StateDir: state, Installation: "bench", Roots: roots,
		Guest: func(string) (*guestbin.Guest, error) { return guestOf(guestProgram(b)) }})
	if err != nil {
		b.Fatal(err)
	}
	inst, err := rt.Create(b.Context(), &sandbox.Spec{Name: "measured", ScopeKey: "measured", Backend: "linux", Image: rootfs.HostName, Workdir: "/", Network: "none", CapDrop: []string{"ALL"},
		Limits: sandbox.Limits{Pids: 100, Memory: 256 << 20}})
	if err == nil {
		err = inst.Start(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = inst.Remove(context.WithoutCancel(b.Context())) })
	measurer := inst.(sandbox.Measurer)
	for b.Loop() {
		if _, err := measurer.Usage(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
