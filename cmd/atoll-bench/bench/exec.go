package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
)

// How often each side runs, and what is claimed.
const (
	execRounds       = 60  // of each side, in turn
	execBurst        = 20  // of the quick sides in every round
	concurrentExecs  = 64  // at once
	concurrentTurns  = 5   // of each side, in turn
	concurrentRounds = 30  // per task, in every turn
	dockerExecFactor = 40  // at least so many times quicker than docker exec
	addedOnSocket    = 350 // µs over fork and exec inside, p50
	addedOnAttach    = 450 // the same, over an attached exec
	concurrentShare  = 0.8 // of what the container itself can fork
)

const truth = "/bin/true"

// execBench measures one command in a running sandbox: over the wire, by docker
// exec, and by a process that is already inside.
func execBench(ctx context.Context, o Options) (*Report, error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, errhint.With(errors.New("the peer of this benchmark, the docker command, is missing"), "install docker.io or docker-ce-cli")
	}
	s, err := newStage(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r := &Report{Bench: "exec"}
	if err := s.floorProgram(); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, *Report) error{s.guestCost, s.execLatency, s.execConcurrency} {
		if err := part(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// floorProgram puts this program into the sandbox's workspace, where it serves
// as the process that is already inside.
func (s *stage) floorProgram() error {
	return egressstage.CopyProgram(filepath.Join(s.session.Plan.Layout.WorkspaceDir, "atoll"), s.options.Self)
}

func (s *stage) execLatency(ctx context.Context, r *Report) error {
	fmt.Fprintln(s.options.Progress, "one command at a time …")
	attached := machine.New(s.overAttach, nil)
	defer attached.Close()
	var wire, attach, peer, floor []float64
	for range execRounds {
		for range execBurst {
			took, err := s.overTheWire(ctx, s.session.Machine)
			if err != nil {
				return err
			}
			wire = append(wire, took)
		}
		for range execBurst {
			took, err := s.overTheWire(ctx, attached)
			if err != nil {
				return err
			}
			attach = append(attach, took)
		}
		took, err := s.byDocker(ctx)
		if err != nil {
			return err
		}
		peer = append(peer, took)
		inside, err := s.inside(ctx, execBurst, 1)
		if err != nil {
			return err
		}
		floor = append(floor, inside.Microseconds...)
	}
	ours, docker, inside := row("exec over the wire (socket)", "µs", wire), row("docker exec", "µs", peer), row("fork and exec by a process inside", "µs", floor)
	through := row("exec over the wire (attach)", "µs", attach)
	r.Rows = append(r.Rows, ours, through, docker, inside)
	r.Ratios = append(r.Ratios,
		atLeast("docker exec against the wire, p50", docker.P50/ours.P50, dockerExecFactor),
		atMost("added over fork and exec inside, p50 µs (socket)", ours.P50-inside.P50, addedOnSocket),
		atMost("added over fork and exec inside, p50 µs (attach)", through.P50-inside.P50, addedOnAttach))
	return nil
}

// atLeast claims that value reaches limit.
func atLeast(name string, value, limit float64) Ratio {
	return Ratio{Name: name, Value: value, Want: fmt.Sprintf("≥ %g", limit), OK: value >= limit}
}

// overTheWire runs the command with everything that a tool call has: output
// collected, resources counted, its tree ended.
func (s *stage) overTheWire(ctx context.Context, m *machine.Machine) (float64, error) {
	var out bytes.Buffer
	start := time.Now()
	result, err := m.Exec(ctx, &machine.Command{Argv: []string{truth}, Stdout: &out, Stderr: &out, EndTree: true})
	took := microseconds(time.Since(start))
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("%s: exit code %d", truth, result.ExitCode)
	}
	return took, err
}

func (s *stage) byDocker(ctx context.Context) (float64, error) {
	host := s.options.Getenv("DOCKER_HOST")
	start := time.Now()
	cmd := exec.CommandContext(ctx, "docker", "-H", host, "exec", s.session.Name, truth)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("docker exec: %w: %s", err, out)
	}
	return microseconds(time.Since(start)), nil
}

// Floor is what a process inside measured of its own forks.
type Floor struct {
	Microseconds []float64 `json:"microseconds"`
	Seconds      float64   `json:"seconds"`
}

// inside lets a process in the sandbox start the command count times.
func (s *stage) inside(ctx context.Context, count, parallel int) (*Floor, error) {
	var out, errs bytes.Buffer
	result, err := s.session.Machine.Exec(ctx, &machine.Command{
		Argv:   []string{s.session.Plan.Spec.Workdir + "/atoll", "floor", strconv.Itoa(count), strconv.Itoa(parallel)},
		Stdout: &out, Stderr: &errs,
	})
	if err != nil {
		return nil, err
	}
	if result.ExitCode != 0 {
		return nil, fmt.Errorf("the process inside failed: %s", strings.TrimSpace(errs.String()))
	}
	f := new(Floor)
	return f, json.Unmarshal(out.Bytes(), f)
}

// MeasureFloor starts the command count times in each of parallel tasks.
func MeasureFloor(count, parallel int) (*Floor, error) {
	f := &Floor{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed atomic.Value
	start := time.Now()
	for range parallel {
		wg.Go(func() {
			for range count {
				took, err := forkOnce()
				if err != nil {
					failed.Store(err)
					return
				}
				mu.Lock()
				f.Microseconds = append(f.Microseconds, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	f.Seconds = time.Since(start).Seconds()
	if err, ok := failed.Load().(error); ok {
		return nil, err
	}
	return f, nil
}

func forkOnce() (float64, error) {
	start := time.Now()
	process, err := os.StartProcess(truth, []string{truth}, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, nil, nil}})
	if err != nil {
		return 0, err
	}
	_, err = process.Wait()
	return microseconds(time.Since(start)), err
}

func (s *stage) execConcurrency(ctx context.Context, r *Report) error {
	fmt.Fprintln(s.options.Progress, "many commands at once …")
	var ours, theirs []float64
	for range concurrentTurns {
		rate, err := s.wireRate(ctx)
		if err != nil {
			return err
		}
		floor, err := s.inside(ctx, concurrentRounds, concurrentExecs)
		if err != nil {
			return err
		}
		ours, theirs = append(ours, rate), append(theirs, float64(len(floor.Microseconds))/floor.Seconds)
	}
	wire, inside := row("commands a second, 64 at once, over the wire", "1/s", ours), row("commands a second, 64 at once, inside", "1/s", theirs)
	r.Rows = append(r.Rows, wire, inside)
	r.Ratios = append(r.Ratios, atLeast("64 at once: the wire against the container itself", wire.P50/inside.P50, concurrentShare))
	return nil
}

func (s *stage) wireRate(ctx context.Context) (float64, error) {
	var wg sync.WaitGroup
	var failed atomic.Value
	start := time.Now()
	for range concurrentExecs {
		wg.Go(func() {
			for range concurrentRounds {
				if _, err := s.overTheWire(ctx, s.session.Machine); err != nil {
					failed.Store(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err, ok := failed.Load().(error); ok {
		return 0, err
	}
	return concurrentExecs * concurrentRounds / time.Since(start).Seconds(), nil
}
