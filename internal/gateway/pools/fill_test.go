package pools

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// service is one with a pool of agent main, which fills nothing.
func service(t *testing.T, size int) (*Service, *bytes.Buffer, *metrics.Registry) {
	t.Helper()
	var log bytes.Buffer
	r := &metrics.Registry{}
	s := &Service{Options: Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Counted: NewCounters(r)}, pools: map[string]*pool{}, wake: make(chan struct{}, 1)}
	p := s.poolOf("main")
	p.size, p.shape = size, "shape"
	s.Counted.show(s)
	return s, &log, r
}

// Failures in a row double the pause up to its limit, and make one line in the log.
func TestBackOff(t *testing.T) {
	s, log, r := service(t, 2)
	p := s.pools["main"]
	want := firstPause
	for range 12 {
		p.retry = time.Time{} // its time has come
		s.note(t.Context(), "main", fmt.Errorf("make: %w", sandbox.ErrNoImage))
		if wait := time.Until(p.retry); wait > want || wait < want-time.Second {
			t.Errorf("after %d failures it waits %v, want %v", p.failures, wait, want)
		}
		if s.missing("main", 0) != 0 || s.wants("main") {
			t.Error("it does not wait")
		}
		want = min(2*want, longestPause)
	}
	s.note(t.Context(), "main", errors.New("another that was under way"))
	if p.failures != 12 {
		t.Errorf("%d failures", p.failures)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
	p.retry = time.Time{}
	s.note(t.Context(), "main", nil)
	if p.failures != 0 || p.why != "" || p.ready != 1 || s.missing("main", 1) != 1 {
		t.Errorf("%+v", p)
	}
	var text bytes.Buffer
	_, _ = r.WriteTo(&text)
	for _, line := range []string{`atoll_pool_refill_failures_total{agent="main",reason="no_image"} 12`, `atoll_pool_ready{agent="main"} 1`, `atoll_pool_size{agent="main"} 2`} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no %s in:\n%s", line, text.String())
		}
	}
}

// Rows of another shape, and those beyond the size, are to go; what is being made or
// claimed is left alone, and so is everything while the shape is not known.
func TestSort(t *testing.T) {
	s, _, _ := service(t, 2)
	row := func(name, agent, shape string, phase sandbox.Phase) *sandbox.Entry {
		return &sandbox.Entry{ContainerName: name, AgentID: agent, ConfigHash: shape, Phase: phase, Kind: sandbox.KindPool}
	}
	rows := []*sandbox.Entry{
		row("a", "main", "shape", sandbox.PhaseReady), row("old", "main", "other", sandbox.PhaseReady), row("claimed", "main", "shape", sandbox.PhaseClaimed),
		row("made", "main", "shape", sandbox.PhaseCreating), row("b", "main", "shape", sandbox.PhaseReady), row("third", "main", "shape", sandbox.PhaseReady),
		row("nobody", "gone", "shape", sandbox.PhaseReady),
	}
	fit, unfit := s.sort(rows)
	var names []string
	for _, e := range unfit {
		names = append(names, e.ContainerName)
	}
	if got := strings.Join(names, " "); fit["main"] != 2 || got != "old third nobody" || s.pools["main"].ready != 2 {
		t.Errorf("%v fit, %s are to go", fit, got)
	}
	s.pools["main"].unplanned = true
	if _, unfit := s.sort(rows); len(unfit) != 1 {
		t.Errorf("%d are to go", len(unfit))
	}
}

// A size has to be one that the configuration could have.
func TestCheckSize(t *testing.T) {
	s, _, _ := service(t, 64)
	for n := range 3 {
		s.poolOf(fmt.Sprint("other", n)).size = 64
	}
	for size, ok := range map[int]bool{-1: false, 0: true, 64: true, 65: false} {
		if err := s.checkSize("main", size); (err == nil) != ok || err != nil && !errors.Is(err, ErrSize) {
			t.Errorf("%d: %v", size, err)
		}
	}
	if err := s.checkSize("fifth", 1); !errors.Is(err, ErrSize) || !strings.Contains(err.Error(), "257") {
		t.Errorf("one too many: %v", err)
	}
}
