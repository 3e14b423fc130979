package docker

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// BenchmarkReuseInANewProcess is what the reuse of a running sandbox costs a
// process that just started: one call to the engine and one connection.
// cpu-µs/op is that process's own, its start left out.
func BenchmarkReuseInANewProcess(b *testing.B) {
	program := filepath.Join(b.TempDir(), "cold")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, "./testdata/cold").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for flavor, host := range map[Flavor]func(testing.TB) string{Docker: enginetest.Docker, Podman: enginetest.Podman} {
		b.Run(string(flavor), func(b *testing.B) {
			l := newLab(b, host(b), flavor)
			i := l.start(b)
			total := 0
			for b.Loop() {
				total += once(b, program, l.options.Host, string(flavor), l.options.Installation, l.options.StateDir, i.name)
			}
			b.ReportMetric(float64(total)/float64(b.N), "cpu-µs/op")
		})
	}
}

func once(b *testing.B, program string, args ...string) int {
	out, err := exec.CommandContext(b.Context(), program, args...).CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	micros, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		b.Fatal(err)
	}
	return micros
}
