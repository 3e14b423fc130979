package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// An engine that goes away makes the gateway not ready. Who has a sandbox goes on,
// who has none yet fails for a reason that is told, and all is well when
// the engine is back.
func TestGatewayEngineRestarts(t *testing.T) {
	t.Parallel()
	engine := enginetest.PrivateDocker(t, enginetest.Options{LiveRestore: true})
	s, _ := gatewaySite(t)
	s.env["DOCKER_HOST"] = engine.Host()
	s.set("agents.defaults.sandbox.backend", "docker")
	s.set("agents.defaults.sandbox.docker.image", enginetest.TinyImage)
	g := s.gateway(time.Minute)
	send := func(account, key string) *api.Task {
		t.Helper()
		task, err := g.Send(t.Context(), "agent:main:"+account+":r", &api.SendRequest{Message: "x", Account: account}, key)
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	if task := send("ann", "before"); task.State != "done" {
		t.Fatalf("before: %+v", task)
	}
	if err := engine.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no engine, and ready", func() bool { return g.status(t, "/ready") == http.StatusServiceUnavailable })
	if task := send("ann", "meanwhile"); task.State != "done" {
		t.Errorf("in a sandbox that runs: %+v", task)
	}
	if task := send("bob", "meanwhile"); task.State != "failed" || task.Error == nil {
		t.Errorf("in one that cannot be made: %+v", task)
	}
	if err := engine.StartAgain(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an engine again, and not ready", func() bool { return g.status(t, "/ready") == http.StatusOK })
	for _, account := range []string{"ann", "bob"} {
		if task := send(account, "after"); task.State != "done" {
			t.Errorf("afterwards, %s: %+v", account, task)
		}
	}
}
