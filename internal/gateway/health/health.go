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
	Look func(context.Context) error
}

// Finding is what a check found; Problem is "" if all is well.
type Finding struct {
	Name    string        `json:"name"`
	Problem string        `json:"problem,omitempty"`
	Took    time.Duration `json:"tookNs"`
}

// Report is what all checks found.
type Report struct {
	OK       bool      `json:"ok"`
	Draining bool      `json:"draining,omitzero"`
	At       time.Time `json:"at"`
	Findings []Finding `json:"findings"`
}

const (
	// Fresh is how long an answer holds.
	Fresh = 2 * time.Second
	// Patience is how long a part has to answer.
	Patience = 5 * time.Second
)

// Doctor asks the parts.
type Doctor struct {
	checks   []Check
	draining atomic.Bool

	mu   sync.Mutex // one at a time asks
	last Report
}

// New returns a doctor that knows these parts.
func New(checks ...Check) *Doctor { return &Doctor{checks: checks} }

// Drain makes every later answer a no: whoever sends work here must stop.
func (d *Doctor) Drain() { d.draining.Store(true) }

// Report asks every part, unless that was done a moment ago.
func (d *Doctor) Report(ctx context.Context) Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	if age := time.Since(d.last.At); d.last.At.IsZero() || age >= Fresh || age < 0 {
		d.last = d.ask(context.WithoutCancel(ctx)) // others wait for the same answer
	}
	r := d.last
	if r.Draining = d.draining.Load(); r.Draining {
		r.OK = false
	}
	return r
}

func (d *Doctor) ask(ctx context.Context) Report {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	r := Report{OK: true, At: time.Now(), Findings: make([]Finding, len(d.checks))}
	var all sync.WaitGroup
	for i, c := range d.checks {
		all.Go(func() { r.Findings[i] = c.find(ctx) })
	}
	all.Wait()
	for _, f := range r.Findings {
		r.OK = r.OK && f.Problem == ""
	}
	return r
}

func (c *Check) find(ctx context.Context) Finding {
	began := time.Now()
	f := Finding{Name: c.Name}
	if err := c.Look(ctx); err != nil {
		f.Problem = err.Error()
	}
	f.Took = time.Since(began)
	return f
}

// Err is nil if all is well, and says what is not.
func (d *Doctor) Err(ctx context.Context) error {
	r := d.Report(ctx)
	if r.OK {
		return nil
	}
	var problems []error
	if r.Draining {
		problems = append(problems, errors.New("the gateway is shutting down"))
	}
	for _, f := range r.Findings {
		if f.Problem != "" {
			problems = append(problems, fmt.Errorf("%s: %s", f.Name, f.Problem))
		}
	}
	return errors.Join(problems...)
}
