package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// stage is an installation of its own on the real engine, with one running
// sandbox and a counter of engine calls in between.
type stage struct {
	options Options
	engine  *countingEngine
	state   string
	app     *app.App
	session *provide.ReadySandbox
}

func newStage(ctx context.Context, o Options) (_ *stage, err error) {
	s := &stage{options: o}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	settings, err := provide.Load(provide.LoadOptions{Getenv: o.Getenv, ConfigPath: o.Config})
	if err != nil {
		return nil, err
	}
	if s.engine, err = countCalls(ctx, settings.EngineHost("docker")); err != nil {
		return nil, err
	}
	if s.state, err = os.MkdirTemp("", "atoll"); err != nil {
		return nil, err
	}
	if s.app, err = app.Open(ctx, provide.LoadOptions{Getenv: s.getenv, ConfigPath: o.Config}); err != nil {
		return nil, err
	}
	fmt.Fprintln(o.Progress, "making the sandbox …")
	s.session, err = s.app.Provide(ctx, benchWho(s.app), provide.Options{})
	return s, err
}

// benchWho is a session whose sandbox has a name that nothing else on the engine
// can have: it contains the name of the benchmark's own state directory.
func benchWho(a *app.App) provide.Subject {
	return provide.Subject{Adjust: func(agent *config.Agent) {
		agent.Sandbox.Backend = "docker" // whose calls are counted, and whose exec is the peer
		agent.Sandbox.Docker.ContainerPrefix = "bench-" + filepath.Base(a.Paths.AtollState) + "-"
	}}
}

// getenv is the environment with our own state directory and counted engine.
func (s *stage) getenv(name string) string {
	switch name {
	case "ATOLL_STATE_DIR":
		return s.state
	case "DOCKER_HOST":
		return s.engine.Host
	}
	return s.options.Getenv(name)
}

func (s *stage) close() {
	if s.app != nil {
		if s.session != nil {
			s.session.Release()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_ = s.app.Discard(ctx, s.session.Plan)
		}
		s.app.Close()
	}
	if s.engine != nil {
		s.engine.close()
	}
	if s.state != "" {
		_ = os.RemoveAll(s.state)
	}
}
