package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// How a host is filled, and what is claimed.
const (
	growthBurst  = 200 // commands at every step, in sandboxes all over the host
	growthBlocks = 5   // into which they are divided, with a process inside in turn
	growthFactor = 1.5 // the last step's p50 against the first's, at most
	growthAtOnce = 4   // sandboxes made, or removed, at once
	removalTime  = 10 * time.Minute
)

// growthSteps are the numbers of running sandboxes at which is measured.
func growthSteps() []int { return []int{1, 10, 50, 100, 200, 300} }

// growth measures commands while more and more sandboxes run.
func growth(ctx context.Context, o Options) (*Report, error) {
	s, err := newStage(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.floorProgram(); err != nil {
		return nil, err
	}
	c := &crowd{stage: s}
	defer c.leave()
	var ours, floors []Row
	for _, n := range growthSteps() {
		fmt.Fprintf(o.Progress, "%d sandboxes …\n", n)
		if err := c.growTo(ctx, n); err != nil {
			return nil, err
		}
		times, floor, err := c.commands(ctx)
		if err != nil {
			return nil, err
		}
		ours = append(ours, row("exec, "+strconv.Itoa(n)+" sandboxes run", "µs", times))
		floors = append(floors, row("fork and exec by a process inside one of "+strconv.Itoa(n), "µs", floor))
	}
	first, last := ours[0], ours[len(ours)-1]
	return &Report{
		Bench: "growth", Rows: append(ours, floors...),
		Ratios: []Ratio{atMost("exec, p50, the most sandboxes against one", last.P50/first.P50, growthFactor)},
	}, nil
}

// crowd is many sandboxes of one installation. The stage's own is the first.
type crowd struct {
	stage *stage
	mu    sync.Mutex
	all   []*provide.ReadySandbox // but for the stage's
	plans []provide.Subject       // of those that may have been made
}

// growTo makes sandboxes until there are n.
func (c *crowd) growTo(ctx context.Context, n int) error {
	slots := make(chan struct{}, growthAtOnce)
	var wg sync.WaitGroup
	failed := make(chan error, n)
	for i := len(c.all) + 1; i < n; i++ {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := c.add(ctx, i); err != nil {
				failed <- err
			}
		})
	}
	wg.Wait()
	close(failed)
	var all []error
	for err := range failed {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// add makes one more sandbox: small, with a session of its own.
func (c *crowd) add(ctx context.Context, i int) error {
	who := benchWho(c.stage.app)
	who.SessionKey = "agent:main:growth-" + strconv.Itoa(i)
	prefix := who.Adjust
	who.Adjust = func(agent *config.Agent) {
		prefix(agent)
		agent.Sandbox.Scope = "session"
	}
	c.mu.Lock()
	c.plans = append(c.plans, who)
	c.mu.Unlock()
	session, err := c.stage.app.Provide(ctx, who, provide.Options{})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, session)
	return nil
}

// commands runs one in each of many sandboxes, in turn, after each has run some.
// Between them a process inside one starts as many: what that takes is the
// kernel's part.
func (c *crowd) commands(ctx context.Context) (times, floor []float64, err error) {
	sessions := append([]*provide.ReadySandbox{c.stage.session}, c.all...)
	for _, s := range sessions {
		for range 4 {
			if _, err := truthIn(ctx, s.Machine); err != nil {
				return nil, nil, err
			}
		}
	}
	for i := range growthBurst {
		took, err := truthIn(ctx, sessions[i*len(sessions)/growthBurst%len(sessions)].Machine)
		if err != nil {
			return nil, nil, err
		}
		times = append(times, took)
		if (i+1)%(growthBurst/growthBlocks) != 0 {
			continue
		}
		inside, err := c.stage.inside(ctx, growthBurst/growthBlocks, 1)
		if err != nil {
			return nil, nil, err
		}
		floor = append(floor, inside.Microseconds...)
	}
	return times, floor, nil
}

// truthIn runs one command and returns how long it took.
func truthIn(ctx context.Context, m *machine.Machine) (float64, error) {
	start := time.Now()
	result, err := m.Exec(ctx, &machine.Command{Argv: []string{truth}, EndTree: true})
	took := microseconds(time.Since(start))
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("%s: exit code %d", truth, result.ExitCode)
	}
	return took, err
}

// leave removes every sandbox that may have been made, whatever became of the
// measurement.
func (c *crowd) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), removalTime)
	defer cancel()
	for _, s := range c.all {
		s.Release()
	}
	slots := make(chan struct{}, growthAtOnce)
	var wg sync.WaitGroup
	for _, who := range slices.Backward(c.plans) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if p, err := c.stage.app.Plan(who); err == nil {
				_ = c.stage.app.Discard(ctx, p)
			}
		})
	}
	wg.Wait()
}
