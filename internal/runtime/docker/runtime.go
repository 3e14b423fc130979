// Package docker makes sandboxes on a Docker engine, and on Podman through the
// compatible part of its API. It turns a sandbox.Spec into a container, brings
// the guest into it, opens wires to the guest, and touches no container that
// does not carry this installation's label.
//
// What a sandbox should be is decided elsewhere (packages plan and policy); what
// happens inside one is the guest's work and package machine's. Where the two
// engines differ, the difference is in podman.go.
package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Flavor is the program behind the API.
type Flavor string

// The flavors.
const (
	Docker Flavor = "docker"
	Podman Flavor = "podman"
)

// EngineLocation says where the engine runs, seen from this process.
type EngineLocation string

// The locations. Nearby means that host paths, process ids and unix sockets are
// the engine's own too.
const (
	LocationUnknown EngineLocation = "" // find out, see facts.location
	Nearby          EngineLocation = "nearby"
	Remote          EngineLocation = "remote"
)

// Delivery is a way of bringing the guest into a container.
type Delivery string

// The ways. A file needs a nearby engine and root, because only root can make
// a file that the sandbox's user may run but not read.
const (
	DeliverAuto   Delivery = ""
	DeliverFile   Delivery = "file"
	DeliverVolume Delivery = "volume"
)

// Options are what a Runtime is made of.
type Options struct {
	Host         string // "unix:///run/docker.sock"
	Flavor       Flavor
	Installation string // the id whose containers are ours
	StateDir     string // absolute; guest and wire directories are made below it
	// APIVersion is what Runtime.APIVersion returned to an earlier process. With
	// it the first call needs no negotiation; it is checked by being used.
	APIVersion string
	// Guest returns the guest program for an architecture ("amd64", "arm64").
	Guest     func(arch string) ([]byte, error)
	Location  EngineLocation
	Delivery  Delivery
	Transport Transport
	Logger    *slog.Logger // nil discards
}

// Runtime makes sandboxes on one engine.
type Runtime struct {
	options Options
	engine  *engine
	logger  *slog.Logger
	guests  guestStore

	factsLock sync.Mutex
	known     *facts
}

var _ sandbox.Runtime = (*Runtime)(nil)

// New returns a runtime. It does not speak to the engine yet.
func New(o Options) (*Runtime, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	e, err := newEngine(o.Host, o.Flavor, o.APIVersion)
	if err != nil {
		return nil, err
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Runtime{options: o, engine: e, logger: logger}, nil
}

func (o *Options) check() error {
	var problems []error
	if o.Flavor != Docker && o.Flavor != Podman {
		problems = append(problems, fmt.Errorf("engine flavor %q is neither docker nor podman", o.Flavor))
	}
	if o.Installation == "" {
		problems = append(problems, errors.New("installation id is missing"))
	}
	if !filepath.IsAbs(o.StateDir) {
		problems = append(problems, fmt.Errorf("state directory %q is not absolute", o.StateDir))
	}
	if o.Guest == nil {
		problems = append(problems, errors.New("guest program is missing"))
	}
	return errors.Join(problems...)
}

// APIVersion is the version that this process speaks with the engine. It asks
// the engine only if that was never settled.
func (r *Runtime) APIVersion(ctx context.Context) (string, error) {
	cli, err := r.engine.client(ctx)
	if err != nil {
		return "", err
	}
	return cli.ClientVersion(), nil
}

// Close drops idle connections. Sandboxes live on.
func (r *Runtime) Close() error { return r.engine.close() }
