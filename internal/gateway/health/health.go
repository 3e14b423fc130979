// Package health says whether the gateway can do its work now: each part that it
// needs is asked, and an answer holds for a moment, so that asking is cheap and
// cannot be used to wear anything out.
package health

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Check asks one part.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// Result is what a check found; Problem is "" if all is well.
type Result struct {
	Name    string        `json:"name"`
	Problem string        `json:"problem,omitempty"`
	Took    time.Duration `json:"tookNs"`
}

// Report is what all checks found.
type Report struct {
	OK       bool      `json:"ok"`
	Draining bool      `json:"draining,omitzero"`
	At       time.Time `json:"at"`
	Results  []Result  `json:"findings"`
}

const (
	// CacheTime is how long an answer holds.
	CacheTime = 2 * time.Second
	// Timeout is how long a part has to answer.
	Timeout = 5 * time.Second
)

// Checker asks the parts.
type Checker struct {
	checks   []Check
	draining atomic.Bool

	mu   sync.Mutex // one at a time asks
	last Report
}

// New returns a doctor that knows these parts.
func New(checks ...Check) *Checker { return &Checker{checks: checks} }

// Drain makes every later answer a no: whoever sends work here must stop.
func (d *Checker) Drain() { d.draining.Store(true) }

// Report asks every part, unless that was done a moment ago.
func (d *Checker) Report(ctx context.Context) Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	if age := time.Since(d.last.At); d.last.At.IsZero() || age >= CacheTime || age < 0 {
		d.last = d.runAll(context.WithoutCancel(ctx)) // others wait for the same answer
	}
	r := d.last
	if r.Draining = d.draining.Load(); r.Draining {
		r.OK = false
	}
	return r
}

func (d *Checker) runAll(ctx context.Context) Report {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	r := Report{OK: true, At: time.Now(), Results: make([]Result, len(d.checks))}
	var all sync.WaitGroup
	for i, c := range d.checks {
		all.Go(func() { r.Results[i] = c.run(ctx) })
	}
	all.Wait()
	for _, f := range r.Results {
		r.OK = r.OK && f.Problem == ""
	}
	return r
}

func (c *Check) run(ctx context.Context) Result {
	began := time.Now()
	f := Result{Name: c.Name}
	if err := c.Run(ctx); err != nil {
		f.Problem = err.Error()
	}
	f.Took = time.Since(began)
	return f
}

// Err is nil if all is well, and says what is not.
func (d *Checker) Err(ctx context.Context) error {
	r := d.Report(ctx)
	if r.OK {
		return nil
	}
	var problems []error
	if r.Draining {
		problems = append(problems, errors.New("the gateway is shutting down"))
	}
	for _, f := range r.Results {
		if f.Problem != "" {
			problems = append(problems, fmt.Errorf("%s: %s", f.Name, f.Problem))
		}
	}
	return errors.Join(problems...)
}
