package bench

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	runCrowd  = 50
	runSmall  = 10 // of them of an account that asks last
	runAtOnce = 8
	// runFair is how many of the large account's runs may be over when the small
	// one's last is, as a share: with turns it is the same number as its own, and
	// those that were under way.
	runFair = 0.75
)

// crowd asks for many runs at once: those of one account first, then a few of
// another, which must not wait for all of them.
func (s *runStage) crowd(ctx context.Context, r *Report) error {
	fmt.Fprintf(s.options.Progress, "%d at once …\n", runCrowd)
	o, err := s.office(ctx, "linux", runAtOnce)
	if err != nil {
		return err
	}
	defer o.close()
	c := &runCrowdCount{}
	var wait sync.WaitGroup
	start := time.Now()
	for i := range runCrowd {
		account := "large"
		if i >= runCrowd-runSmall {
			account = "small"
		}
		wait.Go(func() {
			receipt, err := o.task(ctx, account)
			took := microseconds(time.Since(start)) / milliseconds
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.failures = append(c.failures, err)
				return
			}
			c.times, c.memory = append(c.times, took), append(c.memory, float64(receipt.PeakMemory)/(1<<20))
			c.over(account)
		})
	}
	wait.Wait()
	if len(c.failures) > 0 {
		fmt.Fprintln(s.options.Progress, "the first failure:", c.failures[0])
	}
	if len(c.times) == 0 {
		return fmt.Errorf("%d at once: %w", runCrowd, c.failures[0])
	}
	r.Rows = append(r.Rows,
		row(fmt.Sprintf("%d runs at once, %d at a time, until each was over", runCrowd, runAtOnce), "ms", c.times),
		row("memory of one run's agent, peak", "MB", c.memory))
	r.Ratios = append(r.Ratios,
		exactly(fmt.Sprintf("of %d at once, failures", runCrowd), len(c.failures), 0),
		atMost("share of the large account that was over when the small one was", float64(c.largeThen)/(runCrowd-runSmall), runFair))
	return nil
}

// runCrowdCount is what became of a crowd.
type runCrowdCount struct {
	mu            sync.Mutex
	times, memory []float64
	failures      []error
	large, small  int
	largeThen     int // when the last of the small account was over
}

func (c *runCrowdCount) over(account string) {
	if account == "large" {
		c.large++
		return
	}
	if c.small++; c.small == runSmall {
		c.largeThen = c.large
	}
}
