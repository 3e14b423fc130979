// Package bench measures Atoll beside its peers, all sides interleaved in one
// run. A figure is a distribution; what is claimed is a ratio, or a count.
package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/apistage"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/browserstage"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/claimstage"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/dashboardstage"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"
)

// Report is the outcome of one benchmark.
type Report struct {
	Bench  string  `json:"bench"`
	Rows   []Row   `json:"rows"`
	Ratios []Ratio `json:"ratios"`
}

// Row is the distribution of one measurement.
type Row struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	N    int     `json:"n"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
}

// Ratio is a claim: the value, what is wanted, and whether it holds.
type Ratio struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Want  string  `json:"want"`
	OK    bool    `json:"ok"`
}

// Options are what every benchmark gets.
type Options struct {
	Progress io.Writer
	Getenv   func(string) string
	Config   string // path of the configuration, "" for the usual search
	Self     string // path of this program, which is also the helper inside sandboxes
	Atoll    string // path of the program that is measured
	Backend  string // of claim; "" is linux
}

// Bench is one benchmark.
type Bench struct {
	Name  string
	About string
	run   func(ctx context.Context, o Options) (*Report, error)
	// NeedsEngine is whether a container engine is one of the sides.
	NeedsEngine bool
}

// Run measures. A benchmark that needs an engine looks for it first: some would
// notice only after minutes.
func (b Bench) Run(ctx context.Context, o Options) (*Report, error) {
	if b.NeedsEngine {
		if err := findEngine(ctx, o); err != nil {
			return nil, err
		}
	}
	return b.run(ctx, o)
}

// All returns every benchmark, in the order of help.
func All() []Bench {
	return []Bench{
		{"ensure", "time and engine calls until a running, unchanged sandbox is ready", ensure, true},
		{"exec", "one command in a running sandbox, beside docker exec and a process inside", execBench, true},
		{"growth", "one command, while 1 to 300 sandboxes run", growth, true},
		{"openclaw", "the real OpenClaw on Atoll's docker, beside the real docker and engine", openclawBench, true},
		{"files", "files over the wire, beside OpenClaw's way and a raw copy", filesBench, true},
		{"proxy", "requests to models through the proxy, beside nginx", proxyBench, true},
		{"proxy-first", "of that only the time to the first byte, and where it goes", proxyFirst, false},
		{"proxy-wire", "of that only what the wire of a sandbox adds to an event, beside a bare relay", proxyWire, true},
		{"relay", "a repository into a sandbox and commits out of it, beside plain git; judging the commits", relayBench, false},
		{"gateway", "tasks through the gateway, beside the real OpenClaw; many sessions at once; many that rest", gatewayBench, false},
		{"run", "a task for an agent in a sandbox of its own, beside the bare agent and docker run; fifty at once", runBench, true},
		{"overlay", "work on a directory through an overlay, beside the directory itself; what the gate costs", overlayBench, false},
		{"egress", "connections out of a sandbox by name, beside a bare relay over the same wire; commands beside them", func(ctx context.Context, o Options) (*Report, error) {
			return staged("egress")(egressstage.Measure(ctx, o.Getenv, o.Self, o.Progress))
		}, false},
		{"api", "sandboxes that a program makes through the gateway, beside atoll run and the wire; 200 of them", func(ctx context.Context, o Options) (*Report, error) {
			return staged("api")(apistage.Measure(ctx, o.Atoll, o.Progress))
		}, false},
		{"claim", "a sandbox out of a pool to its first result, beside one that is made", func(ctx context.Context, o Options) (*Report, error) {
			return staged("claim")(claimstage.Measure(ctx, claimstage.Options{Getenv: o.Getenv, Program: o.Atoll, Backend: o.Backend, Config: o.Config, Progress: o.Progress}))
		}, false},
		{"browser", "browsers in sandboxes, beside the same program on the host and Playwright; ten at once", func(ctx context.Context, o Options) (*Report, error) {
			return staged("browser")(browserstage.Measure(ctx, o.Progress))
		}, false},
		{"dashboard", "the web pages in a real browser: what they load, cost and show, beside OpenClaw's; runs with and without tracing", func(ctx context.Context, o Options) (*Report, error) {
			return staged("dashboard")(dashboardstage.Measure(ctx, o.Atoll, o.Progress))
		}, false},
		{"start", "from nothing to a first command's result, beside bwrap and Docker; hundreds alive, a crowd at once", startBench, true},
	}
}

// row sums up samples.
func row(name, unit string, samples []float64) Row {
	sorted := slices.Sorted(slices.Values(samples))
	at := func(q float64) float64 { return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)] }
	return Row{Name: name, Unit: unit, N: len(sorted), P50: at(0.50), P95: at(0.95), P99: at(0.99)}
}

// atMost claims that value does not exceed limit.
func atMost(name string, value, limit float64) Ratio {
	return Ratio{Name: name, Value: value, Want: fmt.Sprintf("≤ %g", limit), OK: value <= limit}
}

// exactly claims a count.
func exactly(name string, value, want int) Ratio {
	return Ratio{Name: name, Value: float64(value), Want: fmt.Sprintf("= %d", want), OK: value == want}
}

// Nothing is what a ratio wants that is only shown.
const Nothing = "–"

// shown is a ratio that claims nothing.
func shown(name string, value float64) Ratio {
	return Ratio{Name: name, Value: value, Want: Nothing, OK: true}
}

// Failed returns the claims that do not hold.
func (r *Report) Failed() []Ratio {
	return slices.DeleteFunc(slices.Clone(r.Ratios), func(x Ratio) bool { return x.OK })
}

// cpuTime is the CPU time that this process has used, in all its threads.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
