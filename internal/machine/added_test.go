package machine_test

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
)

// BenchmarkAdded compares, in turns, a command over the wire with the same
// program started by this process, and reports the medians and what the wire
// adds.
func BenchmarkAdded(b *testing.B) {
	m := machinetest.Start(b, nil).Machine(b, nil)
	n := 500
	if s := os.Getenv("ATOLL_BENCH_N"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	var wire, direct, ping []time.Duration
	for range n {
		begin := time.Now()
		if _, err := m.Exec(b.Context(), &machine.Command{Argv: []string{"/bin/true"}}); err != nil {
			b.Fatal(err)
		}
		wire = append(wire, time.Since(begin))
		begin = time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		direct = append(direct, time.Since(begin))
		begin = time.Now()
		if err := m.Ping(b.Context()); err != nil {
			b.Fatal(err)
		}
		ping = append(ping, time.Since(begin))
	}
	at := func(d []time.Duration, p int) float64 {
		slices.Sort(d)
		return float64(d[len(d)*p/100].Microseconds())
	}
	for _, p := range []int{10, 50, 95} {
		b.ReportMetric(at(wire, p), "µs-wire-p"+strconv.Itoa(p))
		b.ReportMetric(at(direct, p), "µs-direct-p"+strconv.Itoa(p))
	}
	b.ReportMetric(at(wire, 50)-at(direct, 50), "µs-added-p50")
	b.ReportMetric(at(ping, 50), "µs-ping-p50")
}
