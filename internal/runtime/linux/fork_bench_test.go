package linux_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// BenchmarkFork compares the fork of a stopped sandbox that has a gigabyte of
// files in its root with making an empty one: either until the guest answers.
func BenchmarkFork(b *testing.B) {
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
	spec := func(name string) *sandbox.Spec {
		return &sandbox.Spec{Name: name, ScopeKey: name, Backend: "linux", Image: rootfs.HostName, Workdir: "/", Network: "none", CapDrop: []string{"ALL"}}
	}
	b.Run("create", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			inst, err := rt.Create(b.Context(), spec(fmt.Sprintf("new-%d", n)))
			answers(b, inst, err)
		}
	})
	if _, err := rt.Create(b.Context(), spec("source")); err != nil {
		b.Fatal(err)
	}
	upper := filepath.Join(state, "linux", "source", "changes", "upper")
	b.Run("fork of 1 GiB", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			fill(b, filepath.Join(upper, fmt.Sprintf("files-%d", n)), n)
			b.StartTimer()
			inst, err := rt.Fork(b.Context(), "source", spec(fmt.Sprintf("fork-%d", n)))
			answers(b, inst, err)
		}
	})
}

// fill writes a gigabyte the first time, and a file later: what was written is
// in a layer by then, and still part of the sandbox.
func fill(b *testing.B, dir string, n int) {
	count := 1024
	if n > 0 {
		count = 1
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 1<<20)
	for i := range count {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// answers starts a sandbox, waits for its guest and takes it away, untimed.
func answers(b *testing.B, inst sandbox.Instance, err error) {
	b.Helper()
	if err == nil {
		err = inst.Start(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	m := machine.New(inst.Dial, nil)
	if err := m.Ping(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	_ = m.Close()
	if err := inst.Remove(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}
