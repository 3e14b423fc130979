package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// How often each side of the benchmark runs.
const (
	residentRounds = 1000
	freshRounds    = 40
)

// The claims of the benchmark.
const (
	residentCPULimit = 500  // µs of own CPU with a live wire
	freshCPULimit    = 1000 // µs of own CPU in a fresh process, beside the engine call
	growthLimit      = 2    // 10,000 entries against 100
)

// ensure measures Manager.Ensure of a running, unchanged sandbox: in a resident
// process, and in processes that begin with nothing.
func ensure(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Bench: "ensure"}
	s, err := newStage(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for _, part := range []func(context.Context, *Report) error{s.resident, s.fresh, registryCurve} {
		if err := part(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (s *stage) resident(ctx context.Context, r *Report) error {
	fmt.Fprintln(s.options.Progress, "resident process …")
	var wall []float64
	var cpu time.Duration
	calls, err := s.engine.during(func() error {
		cpuBefore := cpuTime()
		for range residentRounds {
			start := time.Now()
			h, err := s.app.Manager.Ensure(ctx, s.session.Plan.Spec)
			if err != nil {
				return err
			}
			wall = append(wall, microseconds(time.Since(start)))
			h.Release()
		}
		cpu = cpuTime() - cpuBefore
		return nil
	})
	if err != nil {
		return err
	}
	perCall := microseconds(cpu) / residentRounds
	r.Rows = append(r.Rows, row("ensure, resident process, wall", "µs", wall), row("ensure, resident process, own CPU (mean)", "µs", []float64{perCall}))
	r.Ratios = append(r.Ratios,
		exactly(fmt.Sprintf("engine calls in %d resident ensures", residentRounds), calls, 0),
		atMost("own CPU of a resident ensure, µs", perCall, residentCPULimit))
	return nil
}

// Fresh is what one fresh process measured of itself.
type Fresh struct {
	WallUs float64 `json:"wallUs"`
	CPUUs  float64 `json:"cpuUs"`
}

// MeasureFresh opens the installation, ensures the benchmark's sandbox once, or
// only makes the engine call of it, and tells what that cost. It is the other
// half of the benchmark, run in processes of its own.
func MeasureFresh(ctx context.Context, o Options, callOnly bool) (*Fresh, error) {
	a, err := app.Open(ctx, provide.LoadOptions{Getenv: o.Getenv, ConfigPath: o.Config})
	if err != nil {
		return nil, err
	}
	defer a.Close()
	p, err := a.Plan(benchWho(a))
	if err != nil {
		return nil, err
	}
	p.Spec.Backend = "docker"
	measured := ensureOnce
	if callOnly {
		measured = callOnce
	}
	cpu, start := cpuTime(), time.Now()
	err = measured(ctx, a.Manager, p.Spec)
	return &Fresh{WallUs: microseconds(time.Since(start)), CPUUs: microseconds(cpuTime() - cpu)}, err
}

func ensureOnce(ctx context.Context, m *sandbox.Manager, spec *sandbox.Spec) error {
	h, err := m.Ensure(ctx, spec)
	if err != nil {
		return err
	}
	defer h.Release()
	if h.Created {
		return errors.New("the sandbox was made anew: its configuration differs from the benchmark's")
	}
	return nil
}

// callOnce is the one call to the engine that a fresh process cannot do without.
func callOnce(ctx context.Context, m *sandbox.Manager, spec *sandbox.Spec) error {
	rt, err := m.Runtime(ctx, spec.Backend)
	if err != nil {
		return err
	}
	_, err = rt.Open(ctx, spec.Name)
	return err
}

func (s *stage) fresh(ctx context.Context, r *Report) error {
	fmt.Fprintln(s.options.Progress, "fresh processes …")
	var wall, cpu, call []float64
	most := 0
	for range freshRounds {
		var f *Fresh
		calls, err := s.engine.during(func() (err error) {
			f, err = s.child(ctx)
			return err
		})
		if err != nil {
			return err
		}
		bare, err := s.child(ctx, "--call-only")
		if err != nil {
			return err
		}
		most = max(most, calls)
		wall, cpu, call = append(wall, f.WallUs), append(cpu, f.CPUUs), append(call, bare.CPUUs)
	}
	own, floor := row("ensure, fresh process, own CPU", "µs", cpu), row("only its engine call, fresh process, own CPU", "µs", call)
	r.Rows = append(r.Rows, row("ensure, fresh process, wall", "µs", wall), own, floor)
	r.Ratios = append(r.Ratios,
		exactly("most engine calls of a fresh ensure", most, 1),
		atMost("own CPU of a fresh ensure beside its engine call, p50 µs", own.P50-floor.P50, freshCPULimit))
	return nil
}

func (s *stage) child(ctx context.Context, flags ...string) (*Fresh, error) {
	args := append([]string{"fresh-ensure"}, flags...)
	if s.options.Config != "" {
		args = append(args, "--config", s.options.Config)
	}
	cmd := exec.CommandContext(ctx, s.options.Self, args...)
	cmd.Env = append(os.Environ(), "ATOLL_STATE_DIR="+s.state, "DOCKER_HOST="+s.engine.Host)
	cmd.Stderr = s.options.Progress
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("fresh process: %w", err)
	}
	f := new(Fresh)
	return f, json.Unmarshal(out, f)
}
