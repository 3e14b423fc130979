package main

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// away is how long the API server is.
const away = 60 * time.Second

// TestAPIServerAway: while the API server is away for a minute the gateway makes nothing and
// says why, and loses nothing; a run that was under way goes on, and its result is fetched when
// the server is back.
func TestAPIServerAway(t *testing.T) {
	c := clustertest.Alone(t, 2)
	model, err := fakellm.Listen(t.Context(), "tcp", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	g := startGateway(t, c, model)
	patient := g.start(t, "patient")
	g.awaitLog(t, patient)
	c.Kill(t, "apiserver")
	begin := time.Now()
	refused := g.end(t, g.start(t, "refused"))
	if refused.Error == nil || refused.Error.Code != "sandbox_failed" || !strings.Contains(refused.Error.Message, "the API server does not answer") {
		t.Errorf("a run without an API server: %+v", refused.Error)
	}
	g.awaitReady(t, "engine: ")
	if rows, err := g.Sandboxes(t.Context(), api.SandboxQuery{}); err != nil || len(rows.Sandboxes) != 1 {
		t.Errorf("the gateway lists %+v, %v", rows, err)
	}
	time.Sleep(away - time.Since(begin))
	c.Start(t, "apiserver")
	g.awaitReady(t, "")
	if r := g.end(t, patient); r.Error != nil || r.Text != "finished patient" {
		t.Errorf("the run that was under way: %q, %+v", r.Text, r.Error)
	}
	g.nothingLeft(t, c)
}

// start starts a run whose agent sleeps a while, and returns its id.
func (g *gateway) start(t *testing.T, task string) string {
	t.Helper()
	made, err := g.Start(t.Context(), &api.RunRequest{GraphID: "sleeps", Message: task}, task)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// end waits for the end of a run.
func (g *gateway) end(t *testing.T, id string) *api.Run {
	t.Helper()
	r, err := g.Events(t.Context(), id, 0, func(api.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// awaitLog waits until the program of a run has said something.
func (g *gateway) awaitLog(t *testing.T, id string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		page, err := g.EventPage(t.Context(), id, 0)
		if err != nil || page.Over || time.Now().After(deadline) {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, e := range page.Events {
			if e.Type == "log" {
				return
			}
		}
	}
}

// awaitReady waits until the gateway is ready, or is not with that problem.
func (g *gateway) awaitReady(t *testing.T, problem string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		_, err := g.Ready(t.Context())
		if problem == "" && err == nil || problem != "" && err != nil && strings.Contains(err.Error(), problem) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("ready: %v; expected %q", err, problem)
		}
	}
}
