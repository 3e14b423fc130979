package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// leakingRuns fails with an error that names a path of the host.
type leakingRuns struct {
	rest.Runs
	err error
}

func (l leakingRuns) Begin(context.Context, *rest.Task) (*run.AcceptedRun, error) { return nil, l.err }

const hidden = "/srv/atoll/state/secret"

// No error shows paths of the host to callers bound to an account; the owner sees
// them.
func TestHostPathsAreNotToldToTenants(t *testing.T) {
	for name, err := range map[string]error{
		"refused":  fmt.Errorf("%w: Path escapes sandbox root (%s)", sandbox.ErrDenied, hidden),
		"failure":  &run.Failure{Code: "disk_full", Message: "1 MiB are free below " + hidden + "; a run needs 256"},
		"internal": errors.New("open " + hidden + ": no such file"),
	} {
		t.Run(name, func(t *testing.T) {
			o := newServer(t, func(o *rest.Options) { o.Runs = leakingRuns{o.Runs, err} })
			if a := o.ask("alice", http.MethodPost, runsPath, task("x")); strings.Contains(string(a.body), "/srv") {
				t.Errorf("a tenant: %s", a.body)
			}
			if a := o.ask("root", http.MethodPost, runsPath, task("x")); !strings.Contains(string(a.body), hidden) {
				t.Errorf("the owner: %s", a.body)
			}
		})
	}
}

// A failed run shows no paths to bound callers either.
func TestHostPathsOfRunsAreNotTold(t *testing.T) {
	o := newServer(t, nil)
	places := o.runner.Sandboxes
	o.runner.Sandboxes = noPlaces{places}
	r := o.start("alice", "true")
	o.until("root", r.ID, api.RunOver)
	for _, path := range []string{"", "/" + r.ID, "/" + r.ID + "/events"} {
		if a := o.ask("alice", http.MethodGet, runsPath+path, nil); a.StatusCode != http.StatusOK || strings.Contains(string(a.body), "/srv") {
			t.Errorf("%s, a tenant: %s", path, a.body)
		}
	}
	if a := o.ask("root", http.MethodGet, runsPath+"/"+r.ID, nil); !strings.Contains(string(a.body), hidden) {
		t.Errorf("the owner: %s", a.body)
	}
}

// noPlaces makes no place.
type noPlaces struct{ run.Sandboxes }

func (noPlaces) Make(context.Context, *run.SandboxRequest) (run.Sandbox, error) {
	return nil, errors.New("mkdir " + hidden + ": permission denied")
}
