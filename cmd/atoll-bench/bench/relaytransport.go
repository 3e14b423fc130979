package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// relayTimes are the milliseconds of one round of one side.
type relayTimes struct {
	in       float64 // the commits, without the files
	checkout float64 // the files
	taken    float64 // the commits out of the sandbox and checked; plain git has no such step
	pushed   float64
}

// relayParts are the rows of a side. What is claimed is about the transport.
func relayParts() []relayPart {
	return []relayPart{
		{", in", false, func(t *relayTimes) float64 { return t.in }},
		{", checkout", false, func(t *relayTimes) float64 { return t.checkout }},
		{", out: taken and checked", true, func(t *relayTimes) float64 { return t.taken }},
		{", out: pushed", true, func(t *relayTimes) float64 { return t.pushed }},
		{", out", false, func(t *relayTimes) float64 { return t.taken + t.pushed }},
		{partTransport, false, func(t *relayTimes) float64 { return t.in + t.taken + t.pushed }},
		{", in and out with checkout", false, func(t *relayTimes) float64 { return t.in + t.checkout + t.taken + t.pushed }},
	}
}

type relayPart struct {
	name      string
	oursAlone bool // plain git has no such step, or no other
	of        func(*relayTimes) float64
}

const partTransport = ", in and out"

// transport brings the repository in and three changed files out, beside a plain
// fetch, checkout and push of the same.
func (s *relayStage) transport(ctx context.Context, r *Report) error {
	if _, err := throughRelay(0)(ctx, s, "first"); err != nil { // it fills the mirror
		return fmt.Errorf("fill the mirror: %w", err)
	}
	samples := map[string][]relayTimes{}
	for round := range relayRounds {
		fmt.Fprintf(s.options.Progress, "round %d of %d …\n", round+1, relayRounds)
		for _, side := range relaySides() {
			took, err := side.run(ctx, s, fmt.Sprintf("%s-%d", side.key, round))
			if err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
			samples[side.name] = append(samples[side.name], took)
		}
	}
	median := relayRows(r, samples)
	for _, pair := range [][2]string{{relayWhole, plainWhole}, {relayLast, plainLast}} {
		r.Ratios = append(r.Ratios, atMost(pair[0]+partTransport+", against plain git, p50", median[pair[0]+partTransport]/median[pair[1]+partTransport], relayTransport))
	}
	return nil
}

func relayRows(r *Report, samples map[string][]relayTimes) (median map[string]float64) {
	median = map[string]float64{}
	for _, side := range relaySides() {
		for _, part := range relayParts() {
			var figures []float64
			for i := range samples[side.name] {
				figures = append(figures, part.of(&samples[side.name][i]))
			}
			one := row(side.name+part.name, "ms", figures)
			median[one.Name] = one.P50
			if side.ours || !part.oursAlone {
				r.Rows = append(r.Rows, one)
			}
		}
	}
	return median
}

const (
	relayWhole = "relay, whole history"
	plainWhole = "plain git, whole history"
	relayLast  = "relay, last 100 commits"
	plainLast  = "plain git, last 100 commits"
)

type relaySide struct {
	name, key string
	ours      bool
	run       relayRound
}

type relayRound func(ctx context.Context, s *relayStage, key string) (relayTimes, error)

func relaySides() []relaySide {
	return []relaySide{
		{plainWhole, "plain", false, plainGit(0)}, {relayWhole, "whole", true, throughRelay(0)},
		{plainLast, "plainpart", false, plainGit(100)}, {relayLast, "part", true, throughRelay(100)},
	}
}

// plainGit clones and pushes without the relay. The clone stays until the end, so
// that no side waits until the disk has freed the files of another.
func plainGit(depth int) relayRound {
	return func(ctx context.Context, s *relayStage, key string) (took relayTimes, err error) {
		dir := filepath.Join(s.dir, "clone-"+key)
		fetch := []string{"-C", dir, "fetch", "-q", "--no-tags", "file://" + s.remote, "main"}
		if depth > 0 {
			fetch = append(fetch, fmt.Sprintf("--depth=%d", depth))
		}
		for _, step := range []struct {
			into *float64
			do   func() error
		}{
			{&took.in, func() error { return gits(ctx, []string{"init", "-q", dir}, fetch) }},
			{&took.checkout, func() error { return gits(ctx, []string{"-C", dir, "checkout", "-q", "-b", "work", "FETCH_HEAD"}) }},
			{new(float64), func() error { return sh(ctx, dir, changeScript) }},
			{&took.pushed, func() error {
				return gits(ctx, []string{"-C", dir, "push", "-q", "file://" + s.remote, "work:refs/heads/sandbox/" + key})
			}},
		} {
			start := time.Now()
			if err := step.do(); err != nil {
				return took, err
			}
			*step.into = sinceMS(start)
		}
		return took, nil
	}
}

func sinceMS(start time.Time) float64 { return microseconds(time.Since(start)) / milliseconds }

// changeScript is a run: three changed files.
const changeScript = `for i in 1 2 3; do echo changed >> dir-$i/file-$i; done && git add -A && git commit -qm work`

// throughRelay is the same through the relay, without its judgement.
func throughRelay(depth int) relayRound {
	return func(ctx context.Context, s *relayStage, key string) (relayTimes, error) {
		session, err := s.app.Provide(ctx, provide.Subject{SessionKey: "agent:main:" + key}, provide.Options{})
		if err != nil {
			return relayTimes{}, err
		}
		s.later = append(s.later, func() error {
			session.Release()
			return s.app.Discard(context.WithoutCancel(ctx), session.Plan)
		})
		project, err := s.relays.Project(deliver.WorkOf{})
		if err != nil {
			return relayTimes{}, err
		}
		project.History = depth
		return s.inAndOut(ctx, project, deliver.Site(session), key)
	}
}

func (s *relayStage) inAndOut(ctx context.Context, project *relay.Project, site relay.Site, key string) (took relayTimes, err error) {
	place := &timedPlace{Sandbox: site.Sandbox}
	site.Sandbox = place
	start := time.Now()
	work, err := s.relays.Prepare(ctx, project, site, branch.Key(key))
	if err != nil {
		return took, err
	}
	took.in, took.checkout = sinceMS(start)-place.checkout, place.checkout
	if err := site.Sandbox.Exec(ctx, &machine.Command{Argv: []string{"sh", "-c", changeScript}, Dir: work.Dir, Stdout: s.options.Progress}); err != nil {
		return took, err
	}
	s.marks = map[relay.Step]time.Time{}
	start = time.Now()
	record, err := s.relays.Take(ctx, project, site, &relay.TakeRequest{Run: key, Work: *work})
	if err != nil {
		return took, err
	}
	took.taken = microseconds(s.marks[relay.Taken].Sub(start)) / milliseconds
	start = time.Now()
	if err := s.relays.Send(ctx, project, record); err != nil {
		return took, err
	}
	if record.Step != relay.Done {
		return took, fmt.Errorf("the commits are %s", record.Step)
	}
	took.pushed = microseconds(s.marks[relay.Pushed].Sub(start)) / milliseconds
	return took, nil
}

// timedPlace notes how long git writes the files of a worktree.
type timedPlace struct {
	relay.Sandbox
	checkout float64
}

func (p *timedPlace) Exec(ctx context.Context, c *machine.Command) error {
	start := time.Now()
	err := p.Sandbox.Exec(ctx, c)
	if slices.Contains(c.Argv, "worktree") && slices.Contains(c.Argv, "add") {
		p.checkout += sinceMS(start)
	}
	return err
}
