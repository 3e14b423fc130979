// Package health reports whether the parts that the gateway needs can work. A
// report is cached for CacheTime, so that frequent requests do not load the parts.
package health

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Check is the check of one part.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// Result is the outcome of one check; Problem is "" if it passed.
type Result struct {
	Name    string        `json:"name"`
	Problem string        `json:"problem,omitempty"`
	Took    time.Duration `json:"tookNs"`
}

// Report holds the results of all checks.
type Report struct {
	OK       bool      `json:"ok"`
	Draining bool      `json:"draining,omitzero"`
	At       time.Time `json:"at"`
	Results  []Result  `json:"findings"`
}

const (
	// CacheTime is how long a report is reused.
	CacheTime = 2 * time.Second
	// Timeout bounds one run of all checks.
	Timeout = 5 * time.Second
)

// Checker runs checks and caches their report.
type Checker struct {
	checks   []Check
	draining atomic.Bool

	mu   sync.Mutex // one run of the checks at a time
	last Report
}

// New returns a Checker of these checks.
func New(checks ...Check) *Checker { return &Checker{checks: checks} }

// Drain makes every later report negative, so that load balancers stop sending
// work.
func (d *Checker) Drain() { d.draining.Store(true) }

// Report returns the cached report, or runs every check if that is too old.
func (d *Checker) Report(ctx context.Context) Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	if age := time.Since(d.last.At); d.last.At.IsZero() || age >= CacheTime || age < 0 {
		d.last = d.runAll(context.WithoutCancel(ctx)) // concurrent callers get the same report
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

// Err returns nil if every check passed, or their problems.
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
