package claimstage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// local is an installation of this process.
type local struct {
	dir    string
	app    *app.App
	member string // that the last sandbox was in its pool
	n      int
}

// image is what sandboxes of a backend are made of.
func image(backend string) string {
	if backend == "linux" {
		return "host"
	}
	return "openclaw-sandbox:bookworm-slim"
}

// openLocal opens an installation whose sandboxes this process makes.
func openLocal(ctx context.Context, o Options) (_ stage, err error) {
	s := &local{}
	if s.dir, err = os.MkdirTemp("", "atoll"); err != nil {
		return nil, err
	}
	backend := cmp.Or(o.Backend, "linux")
	text := fmt.Sprintf(`{ agents: { defaults: { sandbox: { scope: "session", backend: %q, docker: { image: %q, containerPrefix: "bench-%s-" } } } } }`,
		backend, image(backend), filepath.Base(s.dir))
	file := filepath.Join(s.dir, "atoll.json5")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, errors.Join(err, s.close())
	}
	getenv := func(name string) string {
		if name == "ATOLL_STATE_DIR" {
			return filepath.Join(s.dir, "state")
		}
		return o.Getenv(name)
	}
	if s.app, err = app.Open(ctx, provide.LoadOptions{Getenv: getenv, ConfigPath: file}); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.app.Claimed = func(_ *sandbox.Spec, member string) { s.member = member }
	return s, nil
}

func (s *local) fill(ctx context.Context) error {
	p, why, err := s.app.PlanPool(ctx, "main")
	if err != nil || why != "" {
		return errors.Join(err, errors.New("no pool: "+why))
	}
	return s.app.MakePooled(ctx, p)
}

func (s *local) first(ctx context.Context) (time.Duration, bool, error) {
	s.n++
	who := provide.Subject{SessionKey: fmt.Sprintf("agent:main:bench-%d", s.n), Temporary: true}
	start := time.Now()
	ready, err := s.app.Provide(ctx, who, provide.Options{})
	if err != nil {
		return 0, false, err
	}
	_, err = ready.Machine.Exec(ctx, &machine.Command{Argv: []string{truth}})
	took := time.Since(start)
	ready.Release()
	return took, s.member != "", errors.Join(err, s.app.Discard(ctx, ready.Plan))
}

func (s *local) close() error {
	if s.app != nil {
		s.app.Close()
	}
	return os.RemoveAll(s.dir)
}
