package egressstage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/machine"
)

const (
	egressRounds = 6
	egressCalls  = 50 // of a round
	egressLarge  = 2
	egressExecs  = 20 // of a round

	spliceShare   = 1 / 0.8 // of the time of a bare relay
	connectAdds   = 1.0     // ms
	inspectCost   = 2.5     // of splicing
	decisionSlope = 1.2
	besideEgress  = 1.5
)

// Series are the samples of one measurement.
type Series struct {
	Name, Unit string
	Samples    []float64
}

// p50 is the middle sample, as reports show it.
func (s *Series) p50() float64 {
	sorted := slices.Sorted(slices.Values(s.Samples))
	return sorted[len(sorted)/2]
}

// Claim is a ratio, or a difference, and the most that it may be; 0 claims nothing.
type Claim struct {
	Name         string
	Value, Limit float64
}

// Result is what was measured.
type Result struct {
	Series []Series
	Claims []Claim
}

// run is a measurement under way.
type run struct {
	*Stage
	progress io.Writer
	result   Result
}

// Measure measures connections out of a sandbox by name beside a bare relay over the same
// wire, and commands beside such connections. self is this program.
func Measure(ctx context.Context, getenv func(string) string, self string, progress io.Writer) (*Result, error) {
	fmt.Fprintln(progress, "making the sandbox …")
	s, err := New(ctx, getenv, self)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r := &run{Stage: s, progress: progress}
	for _, part := range []func(context.Context) error{r.downloads, r.connects, r.requests, r.decisions, r.commands} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return &r.result, nil
}

func (r *run) add(series ...Series) { r.result.Series = append(r.result.Series, series...) }

func (r *run) claim(claims ...Claim) { r.result.Claims = append(r.result.Claims, claims...) }

// call has a process inside make requests, and returns what each took in ms.
func (r *run) call(ctx context.Context, url string, count int, fresh bool) ([]float64, error) {
	var out bytes.Buffer
	if err := r.Call(ctx, &out, os.Stderr, "egress-caller", url, strconv.Itoa(count), strconv.FormatBool(fresh)); err != nil {
		return nil, err
	}
	var took []time.Duration
	if err := json.Unmarshal(out.Bytes(), &took); err != nil {
		return nil, err
	}
	samples := make([]float64, len(took))
	for i, d := range took {
		samples[i] = milliseconds(d)
	}
	return samples, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// load is what a process inside asks for.
type load struct {
	what  string
	path  string
	count int  // of requests in a round
	fresh bool // each on a connection of its own
}

// sides measures several ways in turn and returns their rows.
func (r *run) sides(ctx context.Context, l load, ways ...string) ([]Series, error) {
	fmt.Fprintln(r.progress, l.what, "…")
	samples := make([][]float64, len(ways))
	for range egressRounds {
		for i, way := range ways {
			took, err := r.call(ctx, way+l.path, l.count, l.fresh)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", l.what, way, err)
			}
			samples[i] = append(samples[i], took...)
		}
	}
	series := make([]Series, len(ways))
	for i, way := range ways {
		series[i] = Series{l.what + ", " + wayNames[way], "ms", samples[i]}
	}
	r.add(series...)
	return series, nil
}

var wayNames = map[string]string{spliced: "spliced", inspected: "inspected", bareRelay: "bare relay over the same wire"}

func (r *run) downloads(ctx context.Context) error {
	rows, err := r.sides(ctx, load{"64 MiB on a kept connection", "/large", egressLarge, false}, bareRelay, spliced, inspected)
	if err != nil {
		return err
	}
	r.claim(Claim{"64 MiB: spliced against a bare relay, time, p50", rows[1].p50() / rows[0].p50(), spliceShare},
		Claim{"64 MiB: inspected against spliced, time, p50", rows[2].p50() / rows[1].p50(), 0})
	return nil
}

func (r *run) connects(ctx context.Context) error {
	rows, err := r.sides(ctx, load{"connect, TLS and a small GET", "/", egressCalls, true}, bareRelay, spliced)
	if err != nil {
		return err
	}
	r.claim(Claim{"connect to first byte: added by splicing to a bare relay, ms, p50", rows[1].p50() - rows[0].p50(), connectAdds})
	return nil
}

func (r *run) requests(ctx context.Context) error {
	rows, err := r.sides(ctx, load{"small GET on a kept connection", "/", egressCalls, false}, spliced, inspected)
	if err != nil {
		return err
	}
	r.claim(Claim{"small GET: inspected against spliced, p50", rows[1].p50() / rows[0].p50(), inspectCost})
	return nil
}

// decisions compares a lookup among few rules with one among many.
func (r *run) decisions(context.Context) error {
	few, many := 10, 1000
	var policies [2]*rule.Policy
	for i, n := range []int{few, many} {
		var rules []string
		for k := range n {
			rules = append(rules, fmt.Sprintf("host%d.example.com", k), fmt.Sprintf("*.sub%d.example.com", k))
		}
		var err error
		if policies[i], err = Policy(rules...); err != nil {
			return err
		}
	}
	var samples [2][]float64
	for range 30 {
		for i, p := range policies {
			samples[i] = append(samples[i], timeDecisions(p))
		}
	}
	a, b := Series{"a decision among 20 rules", "µs", samples[0]}, Series{"a decision among 2,000 rules", "µs", samples[1]}
	r.add(a, b)
	r.claim(Claim{"a decision: 100 times as many rules, fastest rounds", slices.Min(samples[1]) / slices.Min(samples[0]), decisionSlope})
	return nil
}

// timeDecisions returns what a decision takes, in µs.
func timeDecisions(p *rule.Policy) float64 {
	const n = 2000
	start := time.Now()
	for i := range n {
		p.Connect([]string{"host5.example.com", "a.b.sub7.example.com", "evil.example.net"}[i%3], 443)
	}
	return 1000 * milliseconds(time.Since(start)) / n
}

// commands compares commands in a resting sandbox with commands beside downloads that do
// not end, by splicing and by a bare relay: the rest is what the processors are short of.
func (r *run) commands(ctx context.Context) error {
	fmt.Fprintln(r.progress, "commands beside downloads …")
	var idle, busy, relayed []float64
	for range egressRounds {
		for _, side := range []struct {
			way     string
			samples *[]float64
		}{{"", &idle}, {spliced, &busy}, {bareRelay, &relayed}} {
			took, err := r.beside(ctx, side.way)
			if err != nil {
				return err
			}
			*side.samples = append(*side.samples, took...)
		}
	}
	a, b, c := Series{"a command in a resting sandbox", "ms", idle}, Series{"a command beside an endless spliced download", "ms", busy}, Series{"a command beside an endless download by a bare relay", "ms", relayed}
	r.add(a, b, c)
	r.claim(Claim{"a command beside saturated egress against a resting sandbox, p50", b.p50() / a.p50(), besideEgress},
		Claim{"a command beside saturated egress against one beside a bare relay, p50", b.p50() / c.p50(), 0})
	return nil
}

// beside measures commands while a process inside downloads without end; "" is none.
func (r *run) beside(ctx context.Context, way string) ([]float64, error) {
	if way == "" {
		return r.execs(ctx)
	}
	loaded, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Call(loaded, io.Discard, io.Discard, "egress-caller", way+"/large", "1000000", "false") // it is ended
	}()
	time.Sleep(200 * time.Millisecond)
	samples, err := r.execs(ctx)
	cancel()
	<-done
	return samples, err
}

func (r *run) execs(ctx context.Context) (samples []float64, err error) {
	for range egressExecs {
		start := time.Now()
		if _, err := r.Machine.Exec(ctx, &machine.Command{Argv: []string{"true"}}); err != nil {
			return nil, err
		}
		samples = append(samples, milliseconds(time.Since(start)))
	}
	return samples, nil
}
