package app_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// withRestarts runs a test on an engine of its own, whose containers outlive
// it or not.
func withRestarts(t *testing.T, test func(*testing.T, *enginetest.Engine, bool)) {
	for name, live := range map[string]bool{"with live-restore": true, "without live-restore": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, enginetest.PrivateDocker(t, enginetest.Options{LiveRestore: live}), live)
		})
	}
}

// The engine is restarted while a sandbox is made, at every step and while it
// carries out a call. The one who waits gets a sandbox or the typed error; the
// next use gets a sandbox; and nothing is left of the attempts.
func TestEngineRestartedInTheMiddleOfCreate(t *testing.T) {
	t.Parallel()
	withRestarts(t, func(t *testing.T, engine *enginetest.Engine, _ bool) {
		for _, step := range []string{"after intent", "after create", "after start", "after wire", "before ready"} {
			t.Run(step, func(t *testing.T) {
				restartInTheMiddle(t, engine, func(s *site, a *app.App, restart func()) *app.App {
					a.Manager.Checkpoint = func(at string) {
						if at == step {
							restart()
						}
					}
					return a
				})
			})
		}
		for _, call := range []engineCall{{http.MethodPost, "/containers/create", true}, {http.MethodPost, "/start", true}} {
			t.Run(call.method+" "+call.path, func(t *testing.T) {
				restartInTheMiddle(t, engine, func(s *site, a *app.App, restart func()) *app.App {
					a.Close()
					s.env["DOCKER_HOST"] = s.setTrap(call, restart)
					return s.open()
				})
			})
		}
	})
}

// restartInTheMiddle provides a sandbox with an app that arrange has prepared
// to restart the engine once.
func restartInTheMiddle(t *testing.T, engine *enginetest.Engine, arrange func(*site, *app.App, func()) *app.App) {
	s := newSiteOn(t, engine.Host())
	s.set("agents.defaults.sandbox.docker.setupCommand", "rm -f /workspace/done; echo done >/workspace/done")
	clean := s.emptyFootprint()
	restarts := 0
	restart := func() {
		restarts++
		if err := engine.Restart(); err != nil {
			t.Error(err)
		}
	}
	a := arrange(s, s.open(), restart)
	got, err := a.Provide(t.Context(), session("victim"), provide.Options{})
	if _, typed := errors.AsType[*sandbox.ProvisionError](err); err != nil && !typed {
		t.Errorf("%v is not a *ProvisionError", err)
	}
	if err == nil {
		sh(t, got, "true")
		got.Release()
	}
	if restarts != 1 {
		t.Fatalf("%d restarts", restarts)
	}
	a.Close()
	s.env["DOCKER_HOST"] = engine.Host()
	s.useAndDiscard()
	if diff := cmp.Diff(clean, s.footprint(nil)); diff != "" {
		t.Errorf("left behind (-clean +now):\n%s", diff)
	}
}

// A sandbox that runs when its engine is restarted is the same afterwards: with
// live-restore it never stopped, and its wire works all the time; without, it
// is started again.
func TestRunningSandboxAndEngineRestart(t *testing.T) {
	t.Parallel()
	withRestarts(t, func(t *testing.T, engine *enginetest.Engine, live bool) {
		s := newSiteOn(t, engine.Host())
		resident := s.open()
		first := s.provide(resident, session("main"))
		before := s.engine.inspect(first.Name)
		if err := engine.Stop(); err != nil {
			t.Fatal(err)
		}
		if live {
			sh(t, first, "true") // no engine is needed for a wire
			s.provide(resident, session("main")).Release()
		}
		_, err := s.open().Provide(t.Context(), session("main"), provide.Options{})
		wantUnavailable(t, err, engine.Host())
		first.Release()
		if err := engine.StartAgain(); err != nil {
			t.Fatal(err)
		}
		for who, a := range map[string]*app.App{"resident process": resident, "new process": s.open()} {
			again := s.provide(a, session("main"))
			sh(t, again, "true")
			if again.Created {
				t.Errorf("%s: it was made again", who)
			}
		}
		after := s.engine.inspect(first.Name)
		if after.ID != before.ID || (after.State.StartedAt == before.State.StartedAt) != live {
			t.Errorf("container %s started at %s, then %s at %s", before.ID, before.State.StartedAt, after.ID, after.State.StartedAt)
		}
	})
}

// wantUnavailable wants an error that names the engine and what to do.
func wantUnavailable(t *testing.T, err error, host string) {
	t.Helper()
	if _, typed := errors.AsType[*sandbox.ProvisionError](err); !typed || !errors.Is(err, sandbox.ErrUnavailable) {
		t.Fatalf("%v is not a *ProvisionError of an engine that is not there", err)
	}
	if !strings.Contains(err.Error(), host) || !strings.Contains(errhint.Of(err), "start") {
		t.Errorf("%v (hint: %s) does not say which engine, or what to do", err, errhint.Of(err))
	}
}

// Somebody paused a sandbox with the engine's own tool.
func TestPausedSandboxGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	resident := s.open()
	first := s.provide(resident, session("paused"))
	first.Release()
	for who, a := range map[string]*app.App{"the process that has a wire": resident, "another": s.open()} {
		s.engine.must(http.MethodPost, "/containers/"+first.Name+"/pause", "", nil)
		again := s.provide(a, session("paused"))
		sh(t, again, "true")
		if again.Created {
			t.Errorf("%s: it was made again", who)
		}
		again.Release()
	}
}
