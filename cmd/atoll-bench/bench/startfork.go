package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// How often a sandbox is forked, how much it holds, and what is claimed.
const (
	forkRounds = 12
	forkFiles  = 64
	forkEach   = 16  // MiB a file
	forkPlain  = 1.5 // times a plain create, at most
)

// forkConfig lets roots be changed: what is in them is what a fork shares.
const forkConfig = `{ agents: { defaults: { workspace: %q, sandbox: { mode: "all", scope: "session", backend: "linux",
  docker: { readOnlyRoot: false, containerPrefix: %q } } } } }`

// forkStage is an installation with one sandbox that holds a lot.
type forkStage struct {
	app    *app.App
	source provide.Subject
	plan   *plan.Plan // of the source
	n      int
}

// forks compares the fork of a stopped sandbox that holds 1 GiB with making a
// sandbox that holds nothing, in turn: either until the first command's result.
func (s *startStage) forks(ctx context.Context, r *Report) (err error) {
	fmt.Fprintf(s.options.Progress, "forks of %d MiB …\n", forkFiles*forkEach)
	f, err := s.newForkStage(ctx)
	if err != nil {
		return err
	}
	defer f.app.Close()
	defer func() { err = errors.Join(err, f.discard(context.WithoutCancel(ctx))) }()
	if err := f.fill(ctx); err != nil {
		return err
	}
	plain := &side{name: "create to first result, a root that may be changed", measure: f.create}
	fork := &side{name: fmt.Sprintf("fork to first result, of a stopped one with %d MiB", forkFiles*forkEach), measure: f.fork}
	for round := range forkRounds + 1 {
		for _, x := range []*side{plain, fork} {
			took, err := x.measure(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			if round > 0 { // the first warms up
				x.samples = append(x.samples, microseconds(took)/milliseconds)
			}
		}
	}
	created, forked := row(plain.name, "ms", plain.samples), row(fork.name, "ms", fork.samples)
	r.Rows = append(r.Rows, created, forked)
	r.Ratios = append(r.Ratios, atMost("a fork against a plain create", forked.P50/created.P50, forkPlain))
	return nil
}

func (s *startStage) newForkStage(ctx context.Context) (*forkStage, error) {
	dir := filepath.Join(s.dir, "forks")
	workspace, file := filepath.Join(dir, "workspace"), filepath.Join(dir, "atoll.json5")
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, forkConfig, workspace, "fork-"+filepath.Base(s.dir)+"-"), 0o600); err != nil {
		return nil, err
	}
	a, err := app.Open(ctx, provide.LoadOptions{ConfigPath: file, Getenv: func(name string) string {
		if name == "ATOLL_STATE_DIR" {
			return filepath.Join(dir, "state")
		}
		return s.options.Getenv(name)
	}})
	return &forkStage{app: a, source: provide.Subject{SessionKey: "agent:main:source"}}, err
}

// fill makes the sandbox that is forked, once, and stops it.
func (f *forkStage) fill(ctx context.Context) error {
	session, err := f.app.Provide(ctx, f.source, provide.Options{})
	if err != nil {
		return err
	}
	f.plan = session.Plan
	pid := f.app.GuestProcess(ctx, session.Name)
	script := fmt.Sprintf(`mkdir /files && for i in $(seq %d); do head -c %dM /dev/zero >/files/$i || exit 1; done`, forkFiles, forkEach)
	done, err := session.Machine.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", script}})
	session.Release()
	if err == nil && done.ExitCode != 0 {
		err = fmt.Errorf("files of the sandbox to fork: exit code %d", done.ExitCode)
	}
	if err != nil {
		return err
	}
	return endProcess(ctx, pid)
}

// discard takes the source away, if it was made.
func (f *forkStage) discard(ctx context.Context) error {
	if f.plan == nil {
		return nil
	}
	return f.app.Discard(ctx, f.plan)
}

// endProcess asks a guest to end, and waits.
func endProcess(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	for {
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// create makes a sandbox that holds nothing.
func (f *forkStage) create(ctx context.Context) (time.Duration, error) {
	f.n++
	return f.first(ctx, provide.Subject{SessionKey: fmt.Sprintf("agent:main:plain-%d", f.n)}, time.Now())
}

// fork forks the source. The first time, its files become a layer.
func (f *forkStage) fork(ctx context.Context) (time.Duration, error) {
	f.n++
	key := fmt.Sprintf("agent:main:fork-%d", f.n)
	start := time.Now()
	if _, err := f.app.Fork(ctx, f.plan.Spec.Name, key, false); err != nil {
		return 0, err
	}
	return f.first(ctx, provide.Subject{SessionKey: key}, start)
}

// first runs a first command, and removes the sandbox, untimed.
func (f *forkStage) first(ctx context.Context, who provide.Subject, start time.Time) (time.Duration, error) {
	session, err := f.app.Provide(ctx, who, provide.Options{})
	if err != nil {
		return 0, err
	}
	_, err = session.Machine.Exec(ctx, &machine.Command{Argv: []string{truth}})
	took := time.Since(start)
	session.Release()
	return took, errors.Join(err, f.app.Discard(ctx, session.Plan))
}
