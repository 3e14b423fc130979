package dashboardstage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/store"
)

// How much there is of everything.
const (
	manyRuns   = 10_000
	manyBoxes  = 100
	atOnce     = 8
	liveSecond = 20
)

// What is claimed.
const (
	mostScripts  = 60 << 10 // bytes, compressed
	peerShare    = 0.2      // of OpenClaw's
	mostRows     = 60
	mostPage     = 0.02 // of a core
	mostGateway  = 0.01 // of a core
	mostBytes    = 10 << 10
	mostDelay    = 150 // ms
	mostRequests = 3
	pageBytes    = 100 << 10
)

// look is a measurement under way.
type look struct {
	*stage
	*looker
	result egressstage.Result
}

// Measure measures the pages of a program's gateway.
func Measure(ctx context.Context, program string, progress io.Writer) (_ *egressstage.Result, err error) {
	s, err := newStage(ctx, program)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.End()) }()
	code, err := s.CreateLogInCode(ctx)
	if err != nil {
		return nil, err
	}
	l := &look{stage: s}
	if l.looker, err = startLooker(ctx, "http://"+s.address+"/ui/", code.Code); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.looker.Close()) }()
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{{"scripts", l.scripts}, {"10,000 runs", l.runs}, {"100 sandboxes", l.boxes}, {"delays", l.delays}, {"pages", l.pages}, {"tracing", l.tracing}} {
		fmt.Fprintln(progress, part.name, "…")
		if err := part.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return &l.result, nil
}

func (l *look) add(name, unit string, samples ...float64) {
	l.result.Series = append(l.result.Series, egressstage.Series{Name: name, Unit: unit, Samples: samples})
}

func (l *look) claim(name string, value, limit float64) {
	l.result.Claims = append(l.result.Claims, egressstage.Claim{Name: name, Value: value, Limit: limit})
}

// scripts measures what is loaded before the first page is used, beside OpenClaw's.
func (l *look) scripts(ctx context.Context) error {
	a, err := l.do("first")
	if err != nil {
		return err
	}
	peer, err := peerScripts(ctx)
	if err != nil {
		return err
	}
	l.add("scripts before first use", "KiB", a.Scripts/1024)
	l.add("scripts of OpenClaw's Control UI", "KiB", peer/1024)
	l.claim("scripts before first use, bytes", a.Scripts, mostScripts)
	l.claim("scripts against OpenClaw's", a.Scripts/peer, peerShare)
	return nil
}

// runs measures a list of many.
func (l *look) runs(ctx context.Context) error {
	db, err := store.Open(ctx, filepath.Join(l.State(), "atoll.db"))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is lost
	now := time.Now()
	for i := range manyRuns {
		at := now.Add(-time.Duration(i) * time.Minute)
		r := &run.Receipt{ID: fmt.Sprintf("run-%06d", i), Variant: run.HostAgent, Task: "what run " + strconv.Itoa(i) + " was asked for", Model: "p/m", Created: at, Started: at, Ended: at.Add(time.Second)}
		if err := (run.Store{DB: db}).SaveFinished(ctx, r); err != nil {
			return err
		}
	}
	a, err := l.do("rows")
	if err != nil {
		return err
	}
	l.add("rows in the document, of those listed", "", a.Rows)
	l.add("rows that scrolling to the end has listed", "", a.Listed)
	l.claim("rows in the document of 10,000 runs", a.Rows, mostRows)
	return nil
}

// boxes measures a page of many live sandboxes.
func (l *look) boxes(ctx context.Context) error {
	var all sync.WaitGroup
	turns, failed := make(chan struct{}, atOnce), make(chan error, manyBoxes)
	for range manyBoxes {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if _, err := l.CreateSandbox(ctx, &api.CreateSandbox{TimeoutSeconds: 3600}); err != nil {
				failed <- err
			}
		})
	}
	if all.Wait(); len(failed) > 0 {
		return <-failed
	}
	if err := l.say("live", strconv.Itoa(liveSecond)); err != nil {
		return err
	}
	if _, err := l.hear(); err != nil {
		return err
	}
	before, err := l.cpu()
	if err != nil {
		return err
	}
	a, err := l.hear()
	if err != nil {
		return err
	}
	after, err := l.cpu()
	used := (after - before).Seconds() / liveSecond
	l.add("CPU of the page", "% of a core", a.Busy*100)
	l.add("CPU of the gateway", "% of a core", used*100)
	l.add("bytes a second", "KiB", a.Bytes/1024)
	l.claim("CPU of the page with 100 live sandboxes, of a core", a.Busy, mostPage)
	l.claim("CPU of the gateway with 100 live sandboxes, of a core", used, mostGateway)
	l.claim("bytes a second of 100 live sandboxes", a.Bytes, mostBytes)
	return err
}

// delays measures from a line that a program inside prints to its place on the screen.
func (l *look) delays(ctx context.Context) error {
	begun, err := l.Start(ctx, &api.RunRequest{GraphID: "clock", Message: "say the time"}, "")
	if err != nil {
		return err
	}
	a, err := l.do("delay", begun.ID)
	if err != nil {
		return err
	}
	if len(a.Delays) == 0 {
		return errors.New("nothing of the run was shown")
	}
	l.add("from inside to the screen", "ms", a.Delays...)
	sorted := slices.Sorted(slices.Values(a.Delays))
	l.claim("from inside to the screen, p95, ms", sorted[len(sorted)*95/100], mostDelay)
	return nil
}

// pages measures what a page asks for.
func (l *look) pages(context.Context) error {
	for _, p := range []struct{ name, text string }{{"now", "Runs under way"}, {"sandboxes", "in all"}, {"approvals", "Nothing waits"}, {"cost", "Spent"}, {"health", "Gateway"}} {
		a, err := l.do("page", p.name, p.text)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		l.add("page "+p.name, "KiB", a.Bytes/1024)
		l.claim("requests of the page "+p.name, a.Requests, mostRequests+1) // and who is logged in
		l.claim("bytes of the page "+p.name, a.Bytes, pageBytes)
	}
	return nil
}
