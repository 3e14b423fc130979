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
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The repository, and what is claimed of its way in and out.
const (
	relayFiles     = 10_000
	relayCommits   = 5_000
	relayChanges   = 3 // files that a run changes
	relayRounds    = 3
	relayTransport = 1.75 // times plain git, at most
)

// relayStage is an installation whose agents work on a repository of this host.
type relayStage struct {
	options Options
	dir     string
	remote  string
	app     *app.App
	relays  *deliver.Relays
	marks   map[relay.Step]time.Time // when a step was written down
	later   []func() error           // what is taken away at the end
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

func (s *relayStage) close() (err error) {
	for _, end := range s.later {
		err = errors.Join(err, end())
	}
	if s.app != nil {
		s.app.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
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
	if s.app, err = app.Open(ctx, provide.LoadOptions{Getenv: getenv, ConfigPath: file}); err != nil {
		return err
	}
	if s.relays, err = deliver.OpenRelays(s.app.Settings); err != nil {
		return err
	}
	s.relays.OnStep = func(r *relay.Record) { s.marks[r.Step] = time.Now() }
	return nil
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
