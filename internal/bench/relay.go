package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
)

// The repository, and what is claimed of its way in and out.
const (
	relayFiles     = 10_000
	relayCommits   = 5_000
	relayChanges   = 3 // files that a run changes
	relayRounds    = 3
	relayTransport = 1.5 // times plain git, at most
)

// relayStage is an installation whose agents work on a repository of this host.
type relayStage struct {
	options Options
	dir     string
	remote  string
	app     *app.App
	relays  *app.Relays
	marks   map[relay.Step]time.Time // when a step was written down
}

// relayBench measures how a repository gets into a sandbox and commits out of
// it, beside plain git; and what judging the commits takes.
func relayBench(ctx context.Context, o Options) (_ *Report, err error) {
	s := &relayStage{options: o}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.dir, err = os.MkdirTemp("", "atoll"); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	r := &Report{Bench: "relay"}
	for _, part := range []func(context.Context, *Report) error{s.transport, s.judgement} {
		if err := part(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (s *relayStage) close() error {
	if s.app != nil {
		s.app.Close()
	}
	return os.RemoveAll(s.dir)
}

func (s *relayStage) open(ctx context.Context) error {
	fmt.Fprintf(s.options.Progress, "making a repository of %d files and %d commits …\n", relayFiles, relayCommits)
	s.remote = filepath.Join(s.dir, "remote.git")
	if err := makeHistory(ctx, s.remote, relayFiles, relayCommits); err != nil {
		return err
	}
	type object = map[string]any
	text, err := json.Marshal(object{
		"relay":  object{"repository": s.remote},
		"agents": object{"defaults": object{"workspace": filepath.Join(s.dir, "agent"), "sandbox": object{"mode": "all", "backend": "linux", "scope": "session"}}},
	})
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "atoll.json5")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	getenv := func(name string) string {
		if name == "ATOLL_STATE_DIR" {
			return filepath.Join(s.dir, "state")
		}
		return s.options.Getenv(name)
	}
	if s.app, err = app.Open(ctx, app.Options{Getenv: getenv, ConfigPath: file}); err != nil {
		return err
	}
	if s.relays, err = s.app.Relays(); err != nil {
		return err
	}
	s.relays.Note = func(r *relay.Record) { s.marks[r.Step] = time.Now() }
	return nil
}

// transport brings the repository in and three changed files out, beside a plain
// fetch, checkout and push of the same.
func (s *relayStage) transport(ctx context.Context, r *Report) error {
	samples := map[string][]float64{}
	for round := range relayRounds + 1 { // the first fills the mirror
		fmt.Fprintf(s.options.Progress, "round %d of %d …\n", round, relayRounds)
		for _, side := range relaySides() {
			before, after, err := side.run(ctx, s, fmt.Sprintf("%s-%d", side.key, round))
			if err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
			if round > 0 {
				samples[side.name+", before"] = append(samples[side.name+", before"], before)
				samples[side.name+", after"] = append(samples[side.name+", after"], after)
				samples[side.name] = append(samples[side.name], before+after)
			}
		}
	}
	median := map[string]float64{}
	for _, side := range relaySides() {
		for _, part := range []string{", before", ", after", ""} {
			one := row(side.name+part, "ms", samples[side.name+part])
			r.Rows, median[one.Name] = append(r.Rows, one), one.P50
		}
	}
	r.Ratios = append(r.Ratios,
		atMost("relay, whole history, against plain git, p50", median[relayWhole]/median[plainWhole], relayTransport),
		atMost("relay, last 100 commits, against plain git with as many, p50", median[relayPart]/median[plainPart], relayTransport))
	return nil
}

const (
	relayWhole = "relay, whole history"
	plainWhole = "plain git, whole history"
	relayPart  = "relay, last 100 commits"
	plainPart  = "plain git, last 100 commits"
)

type relaySide struct {
	name, key string
	run       func(ctx context.Context, s *relayStage, key string) (before, after float64, err error)
}

func relaySides() []relaySide {
	return []relaySide{
		{plainWhole, "plain", plainGit(0)}, {relayWhole, "whole", throughRelay(0)},
		{plainPart, "plainpart", plainGit(100)}, {relayPart, "part", throughRelay(100)},
	}
}

// plainGit is what somebody does who has nobody to fear.
func plainGit(depth int) func(context.Context, *relayStage, string) (float64, float64, error) {
	return func(ctx context.Context, s *relayStage, key string) (before, after float64, err error) {
		dir := filepath.Join(s.dir, "clone-"+key)
		fetch := []string{"-C", dir, "fetch", "-q", "--no-tags", "file://" + s.remote, "main"}
		if depth > 0 {
			fetch = append(fetch, fmt.Sprintf("--depth=%d", depth))
		}
		start := time.Now()
		err = gits(ctx, []string{"init", "-q", dir}, fetch, []string{"-C", dir, "checkout", "-q", "-b", "work", "FETCH_HEAD"})
		before = microseconds(time.Since(start)) / milliseconds
		if err == nil {
			err = sh(ctx, dir, changeScript)
		}
		start = time.Now()
		if err == nil {
			err = gits(ctx, []string{"-C", dir, "push", "-q", "file://" + s.remote, "work:refs/heads/sandbox/" + key})
		}
		return before, microseconds(time.Since(start)) / milliseconds, errors.Join(err, os.RemoveAll(dir))
	}
}

// changeScript is a run: three changed files.
const changeScript = `for i in 1 2 3; do echo changed >> dir-$i/file-$i; done && git add -A && git -c user.name=agent -c user.email=agent@example.com commit -qm work`

// throughRelay is the same through the relay, without its judgement.
func throughRelay(depth int) func(context.Context, *relayStage, string) (float64, float64, error) {
	return func(ctx context.Context, s *relayStage, key string) (before, after float64, err error) {
		session, err := s.app.Provide(ctx, app.Who{SessionKey: "agent:main:" + key})
		if err != nil {
			return 0, 0, err
		}
		defer func() {
			session.Release()
			err = errors.Join(err, s.app.Discard(context.WithoutCancel(ctx), session.Plan))
		}()
		project, err := s.relays.Project("")
		if err != nil {
			return 0, 0, err
		}
		project.History = depth
		return s.inAndOut(ctx, project, app.RelaySite(session), key)
	}
}

func (s *relayStage) inAndOut(ctx context.Context, project *relay.Project, site relay.Site, key string) (before, after float64, err error) {
	start := time.Now()
	work, err := s.relays.Prepare(ctx, project, site, branch.Key(key))
	if err != nil {
		return 0, 0, err
	}
	before = microseconds(time.Since(start)) / milliseconds
	if err := site.Place.Exec(ctx, &relay.Command{Argv: []string{"sh", "-c", changeScript}, Dir: work.Dir, Stdout: s.options.Progress}); err != nil {
		return 0, 0, err
	}
	s.marks = map[relay.Step]time.Time{}
	start = time.Now()
	record, err := s.relays.Take(ctx, project, site, &relay.Order{Run: key, Work: *work})
	if err != nil {
		return 0, 0, err
	}
	taken := s.marks[relay.Taken].Sub(start)
	start = time.Now()
	if err := s.relays.Send(ctx, project, record); err != nil {
		return 0, 0, err
	}
	if record.Step != relay.Done {
		return 0, 0, fmt.Errorf("the commits are %s", record.Step)
	}
	return before, microseconds(taken+s.marks[relay.Pushed].Sub(start)) / milliseconds, nil
}

// gits runs git, one after the other.
func gits(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		if out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

func sh(ctx context.Context, dir, script string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
