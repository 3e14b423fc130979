// Package kube makes sandboxes on a Kubernetes cluster: each is a pod that a Lease owns.
// The Lease is the name's lock and says what the sandbox is to be; the pod is its
// processes. A pod cannot be stopped and started again, so a sandbox that was stopped has
// its Lease only, and the next start makes another pod from what the Lease has written.
//
// What a sandbox should be is decided elsewhere (packages plan and policy); what happens
// inside is the guest's work and package machine's. The wire to the guest is an exec of
// the API server.
package kube

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Options are what a Runtime is made of.
type Options struct {
	Settings     kubekeys.Settings
	Installation string       // the id whose pods are ours
	Owner        bool         // this process is the gateway: the one before it loses its wires
	Starts       uint64       // how often gateways of the installation were started: see nextEpoch
	Logger       *slog.Logger // nil discards
	// Room returns an error if the disk of the private copies does not take so many bytes;
	// nil: it is not asked.
	Room func(bytes int64) error
}

// Runtime makes sandboxes in one namespace of a cluster.
type Runtime struct {
	settings     kubekeys.Settings
	installation string
	logger       *slog.Logger
	dials        *dialLimit
	starts       chan struct{} // an element for each pod that is being made or filled
	owner        bool
	room         func(bytes int64) error
	leastEpoch   uint64          // of this process: the number of starts of gateways
	idleTimeout  time.Duration   // of a session without use
	hasProvider  atomic.Bool     // what kubernetes.provider needs was found
	ctx          context.Context // ends with Close
	cancel       context.CancelFunc

	mu       sync.Mutex
	known    *cluster             // nil until it is first needed
	sessions map[string]*session  // by the pod's UID
	epochs   map[types.UID]uint64 // of the Leases that this gateway has taken over

	terminations terminations
}

var (
	_ sandbox.Runtime = (*Runtime)(nil)
	_ sandbox.Sweeper = (*Runtime)(nil)
)

// New returns a runtime. It does not speak to the cluster yet.
func New(o Options) (*Runtime, error) {
	if o.Installation == "" {
		return nil, errors.New("installation id is missing")
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Runtime{
		ctx: ctx, cancel: cancel,
		settings: o.Settings, installation: o.Installation, logger: logger, dials: newDialLimit(dialsPerSecond), owner: o.Owner, room: o.Room, leastEpoch: o.Starts,
		starts:      make(chan struct{}, max(1, o.Settings.StartsAtOnce)),
		idleTimeout: idleTimeout, sessions: map[string]*session{}, epochs: map[types.UID]uint64{}, terminations: newTerminations(),
	}, nil
}

// cluster returns the connection to the API server, which is made once.
func (r *Runtime) cluster() (*cluster, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known != nil {
		return r.known, nil
	}
	c, err := connect(&r.settings)
	if err != nil {
		return nil, err
	}
	r.known = c
	if r.owner {
		r.watchTerminations(c)
	}
	return c, nil
}

// Close ends the wires. Sandboxes live on.
func (r *Runtime) Close() error {
	r.terminations.close()
	r.mu.Lock()
	r.cancel()
	open := r.sessions
	r.sessions = map[string]*session{}
	r.mu.Unlock()
	for _, s := range open {
		s.close()
	}
	return nil
}

// startTimeout is how long the start of a pod may take, with its removal if it fails.
func (r *Runtime) startTimeout() time.Duration {
	return time.Duration(r.settings.StartTimeoutSec) * time.Second
}

// runTimeout is how long a pod may take to run.
func (r *Runtime) runTimeout() time.Duration {
	return r.startTimeout() - min(unstartedTimeout, r.startTimeout()/4)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
