package health_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/health"
)

func TestReport(t *testing.T) {
	var broken atomic.Bool
	d := health.New(health.Check{Name: "store", Run: func(context.Context) error { return nil }}, health.Check{Name: "engine", Run: func(context.Context) error {
		if broken.Load() {
			return errors.New("gone")
		}
		return nil
	}})
	if err := d.Err(t.Context()); err != nil {
		t.Error(err)
	}
	d.Drain()
	if r := d.Report(t.Context()); r.OK || !r.Draining {
		t.Errorf("%+v", r)
	}
	broken.Store(true)
	d = health.New(health.Check{Name: "engine", Run: func(context.Context) error { return errors.New("gone") }})
	if err := d.Err(t.Context()); err == nil || !strings.Contains(err.Error(), "engine: gone") {
		t.Error(err)
	}
}

// A thousand concurrent reports run the checks once.
func TestAnswersHoldForAMoment(t *testing.T) {
	var looks atomic.Int32
	d := health.New(health.Check{Name: "store", Run: func(context.Context) error { looks.Add(1); return nil }})
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() { d.Report(t.Context()) })
	}
	all.Wait()
	if n := looks.Load(); n > 10 {
		t.Errorf("%d looks", n)
	}
}
