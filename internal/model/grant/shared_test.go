package grant_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/wire"
)

// newSharedSites are openers of grants in one real sandbox, each with its own wire and
// locks as in a process of its own.
func newSharedSites(t *testing.T, n int) []*site {
	t.Helper()
	guest, port := machinetest.Start(t, nil), freePort(t)
	sites := make([]*site, n)
	for i := range sites {
		locks, err := filelock.Open(filepath.Join(guest.Dir, "leases"))
		check(t, err)
		s := &site{guest: guest, machine: guest.Machine(t, nil), port: port}
		s.grants = grant.NewGrants("s", s.machine, locks)
		sites[i] = s
	}
	return sites
}

// openShared opens a grant and serves the port for its callers.
func (s *site) openShared(t *testing.T, run string) *grant.Grant {
	t.Helper()
	g := s.open(t, run)
	inner, err := s.machine.Listen(patience(t), s.port, &machine.PortOptions{
		Grant: g.ID(), Gate: func(context.Context, machine.Caller) error { return nil },
	})
	check(t, err)
	tellRuns(t, s.grants.Listener(inner, true))
	return g
}

// stayer leaves a process of another session behind, by a double fork, that ignores
// SIGTERM and asks over and over.
var stayer = strings.TrimSuffix(daemon, "stay(False); stay(True)\n") + "stay(False)\n"

// TestThreeGrantsAtOnce opens three grants of one account in one sandbox. Every process
// is served under the grant that it descends from. Ending one ends its processes, those
// that hide included; the others go on.
func TestThreeGrantsAtOnce(t *testing.T) {
	sites := newSharedSites(t, 3)
	runs := []string{"first", "second", "third"}
	var grants []*grant.Grant
	for i, s := range sites {
		grants = append(grants, s.openShared(t, runs[i]))
	}
	leave := strings.ReplaceAll(stayer, "DIR", fmt.Sprintf("%q", sites[0].guest.Dir))
	for i, s := range sites {
		s.python(t, grants[i], leave)
		if got := s.python(t, grants[i], justAsk); got != runs[i] {
			t.Errorf("of run %s: %q", runs[i], got)
		}
	}
	if got := sites[0].python(t, nil, justAsk); got != "403" {
		t.Errorf("of no run: %q", got)
	}
	s := sites[0]
	s.eventually(t, "all that were left ask", func() bool { return len(s.seen(t)) == 3 })
	s.wantOneRunEach(t, runs, "")
	check(t, grants[1].Close())
	if got := s.running(t); got != 2 {
		t.Errorf("%d processes live after the end of one grant of three; want 2", got)
	}
	before := s.seen(t)
	s.eventually(t, "the others go on", func() bool { return s.grew(t, before) == 2 })
	if _, err := sites[1].machine.Exec(patience(t), sites[1].command(grants[1], justAsk)); !errors.Is(err, machine.ErrNoGrant) {
		t.Errorf("a command under the ended grant: %v", err)
	}
	for _, i := range []int{0, 2} {
		if got := sites[i].python(t, grants[i], justAsk); got != runs[i] {
			t.Errorf("of run %s, after another ended: %q", runs[i], got)
		}
		check(t, grants[i].Close())
	}
	if got := s.running(t); got != 0 {
		t.Errorf("%d processes live after the end of all grants", got)
	}
	s.wantOneRunEach(t, runs, "403") // between the end of the grant and that of the process
}

// wantOneRunEach checks that every process was served under one run only, and that all
// runs are among them. The answer except is ignored.
func (s *site) wantOneRunEach(t *testing.T, runs []string, except string) {
	t.Helper()
	var served []string
	for name, lines := range s.seen(t) {
		words := slices.Compact(slices.Sorted(strings.FieldsSeq(lines)))
		words = slices.DeleteFunc(words, func(word string) bool { return word == except })
		if len(words) != 1 {
			t.Errorf("%s was answered %q", name, words)
		}
		served = append(served, words...)
	}
	if slices.Sort(served); !slices.Equal(served, runs) {
		t.Errorf("served under %q; want %q", served, runs)
	}
}

// TestTooManyGrants: a sandbox has wire.MaxGrants at most, and goes on with those.
func TestTooManyGrants(t *testing.T) {
	s := newSharedSites(t, 1)[0]
	var open []*grant.Grant
	for i := range wire.MaxGrants {
		open = append(open, s.open(t, fmt.Sprint(i)))
	}
	if _, err := s.grants.Open(patience(t), hour("one more")); err == nil || !strings.Contains(err.Error(), "too many grants") {
		t.Errorf("one more: %v", err)
	}
	check(t, open[0].Close())
	check(t, s.open(t, "instead").Close())
	for _, g := range open[1:] {
		check(t, g.Close())
	}
}
