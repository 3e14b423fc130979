package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The crowds, and what is claimed of them.
const (
	aliveCount  = 300
	aliveStep   = 50  // sandboxes a row of the curve
	aliveMemory = 5   // MB a sandbox, at most
	aliveGrowth = 1.5 // the last against the first, at most
	crowdCount  = 100 // made at once
	crowdPeer   = 1   // times as many a second as runc, at least
	idleFor     = 3 * time.Second
)

// alive makes many sandboxes that stay, and shows how long each took and what
// they hold together.
func (s *startStage) alive(ctx context.Context, r *Report) (err error) {
	fmt.Fprintf(s.options.Progress, "%d alive …\n", aliveCount)
	var sessions []*provide.ReadySandbox
	defer func() { err = errors.Join(err, s.removeAll(context.WithoutCancel(ctx), sessions)) }()
	var samples []float64
	for range aliveCount {
		start := time.Now()
		session, err := s.app.Provide(ctx, s.who("linux", ""), provide.Options{})
		if err != nil {
			return err
		}
		sessions = append(sessions, session)
		if _, err := session.Machine.Exec(ctx, &machine.Command{Argv: []string{truth}}); err != nil {
			return err
		}
		samples = append(samples, microseconds(time.Since(start))/milliseconds)
	}
	for from := 0; from < aliveCount; from += aliveStep {
		r.Rows = append(r.Rows, row(fmt.Sprintf("start of sandbox %d to %d", from+1, from+aliveStep), "ms", samples[from:from+aliveStep]))
	}
	first, last := row("", "", samples[:aliveStep]), row("", "", samples[aliveCount-aliveStep:])
	time.Sleep(idleFor) // guests give memory back when they are idle
	memory, err := s.memoryOf(ctx, sessions)
	if err != nil {
		return err
	}
	r.Rows = append(r.Rows, row("memory of one idle sandbox (PSS)", "MB", memory))
	r.Ratios = append(r.Ratios,
		atMost("the last starts against the first", last.P50/first.P50, aliveGrowth),
		atMost("memory of an idle sandbox, MB", row("", "", memory).P50, aliveMemory))
	return nil
}

// crowd makes many sandboxes at once.
func (s *startStage) crowd(ctx context.Context, r *Report) error {
	fmt.Fprintf(s.options.Progress, "%d at once …\n", crowdCount)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sessions []*provide.ReadySandbox
	var failures []error
	start := time.Now()
	for range crowdCount {
		who := s.who("linux", "")
		wg.Go(func() {
			session, err := s.app.Provide(ctx, who, provide.Options{})
			if err == nil {
				_, err = session.Machine.Exec(ctx, &machine.Command{Argv: []string{truth}})
			}
			mu.Lock()
			defer mu.Unlock()
			if session != nil {
				sessions = append(sessions, session)
			}
			if err != nil {
				failures = append(failures, err)
			}
		})
	}
	wg.Wait()
	rate := crowdCount / time.Since(start).Seconds()
	r.Rows = append(r.Rows, row(fmt.Sprintf("%d at once, starts a second", crowdCount), "1/s", []float64{rate}))
	r.Ratios = append(r.Ratios, exactly(fmt.Sprintf("of %d at once, failures", crowdCount), len(failures), 0))
	if len(failures) > 0 {
		fmt.Fprintln(s.options.Progress, "the first failure:", failures[0])
	}
	if err := s.removeAll(context.WithoutCancel(ctx), sessions); err != nil {
		return err
	}
	peer, err := s.runcCrowd(ctx, r)
	if err == nil && peer > 0 {
		r.Ratios = append(r.Ratios, atLeast(fmt.Sprintf("of %d at once, starts a second against runc run", crowdCount), rate/peer, crowdPeer))
	}
	return err
}

func (s *startStage) removeAll(ctx context.Context, sessions []*provide.ReadySandbox) (err error) {
	for _, session := range sessions {
		session.Release()
		err = errors.Join(err, s.app.Discard(ctx, session.Plan))
	}
	return err
}

// memoryOf is what each sandbox holds, its part of shared pages included, in MB.
// All that runs in an idle one is its guest.
func (s *startStage) memoryOf(ctx context.Context, sessions []*provide.ReadySandbox) (samples []float64, err error) {
	for _, session := range sessions {
		pid := s.app.GuestProcess(ctx, session.Name)
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
				kb, _ := strconv.ParseFloat(fields[1], 64)
				samples = append(samples, kb/1024)
			}
		}
	}
	return samples, nil
}
