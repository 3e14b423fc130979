package machine_test

import (
	"io"
	"os/exec"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
)

func BenchmarkPing(b *testing.B) {
	m := machinetest.Start(b, nil).Machine(b, nil)
	for b.Loop() {
		if err := m.Ping(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExecTrue(b *testing.B) {
	m := machinetest.Start(b, nil).Machine(b, nil)
	for b.Loop() {
		if _, err := m.Exec(b.Context(), &machine.Command{Argv: []string{"/bin/true"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHostExecTrue is the floor: the same program, started by this process.
func BenchmarkHostExecTrue(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExecParallel(b *testing.B) {
	m := machinetest.Start(b, nil).Machine(b, nil)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := m.Exec(b.Context(), &machine.Command{Argv: []string{"/bin/true"}}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkOutput(b *testing.B) {
	m := machinetest.Start(b, nil).Machine(b, nil)
	b.SetBytes(64 << 20)
	for b.Loop() {
		res, err := m.Exec(b.Context(), &machine.Command{Argv: []string{"head", "-c", "67108864", "/dev/zero"}, Stdout: io.Discard})
		if err != nil || res.Stdout.Total != 64<<20 {
			b.Fatal(res, err)
		}
	}
}
