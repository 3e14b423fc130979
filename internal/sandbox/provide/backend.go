package provide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/docker"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// The backends of this build.
const (
	BackendAuto   = "auto"
	BackendDocker = "docker"
	BackendPodman = "podman"
	BackendLinux  = "linux"
)

// probeTimeout is how long a socket may take to accept before it counts as dead.
const probeTimeout = time.Second

// Backend is the choice of machinery for one sandbox, and the reason for it.
type Backend struct {
	Configured string `json:"configured"`
	Effective  string `json:"effective"` // "" if there is none
	Reason     string `json:"reason"`
	hint       string // what to do if there is none
	wrong      bool   // no machinery could do it: a setting is a mistake
}

// Backend chooses the machinery for a plan. Stored is the backend that the
// sandbox was made with before, "" if there is none: what was chosen once stays
// until the configuration asks for something else.
func (s *Settings) Backend(ctx context.Context, p *plan.Plan, stored string) Backend {
	configured := p.Agent.Sandbox.Backend
	choice := Backend{Configured: configured}
	switch {
	case configured == BackendDocker || configured == BackendPodman || configured == BackendLinux:
		choice.Effective, choice.Reason = configured, "configured"
	case s.Runtimes[configured] != nil:
		choice.Effective, choice.Reason = configured, "configured"
	case configured == BackendKubernetes:
		choice.Reason, choice.hint = kubeMissing, kubeRemedy
	case configured != BackendAuto:
		choice.Reason = "the " + configured + " backend is not part of this build"
	case stored != "":
		choice.Effective, choice.Reason = stored, "the sandbox was made with it"
	default:
		s.choose(ctx, p, &choice)
	}
	return choice
}

// choose takes the first machinery that can do all that the plan asks.
func (s *Settings) choose(ctx context.Context, p *plan.Plan, choice *Backend) {
	gaps := s.linuxGaps(ctx, p)
	obstacle := obstacleOf(gaps)
	if obstacle == "" {
		choice.Effective, choice.Reason = BackendLinux, "this machine can enforce all that is asked, without an engine"
		return
	}
	if at := slices.IndexFunc(gaps, func(g sandbox.Gap) bool { return g.Wrong }); at >= 0 {
		choice.Reason, choice.hint, choice.wrong = gaps[at].Field+": "+gaps[at].Reason, gaps[at].Remedy, true
		return
	}
	host := s.EngineHost(BackendDocker)
	if err := ProbeEngine(host); err != nil {
		choice.Reason = fmt.Sprintf("no engine: Docker at %s: %v; and not without an engine: %s", host, err, obstacle)
		choice.hint = cmp.Or(limitRemedy(gaps), silenceHint(host, err))
		if remedy := withoutEngine(gaps); choice.hint == startDocker && remedy != "" {
			choice.hint += "; or without an engine: " + remedy
		}
		return
	}
	choice.Effective, choice.Reason = BackendDocker, "Docker answers at "+host+"; not linux: "+obstacle
}

// withoutEngine is what would let a plan do without an engine; "" if that is not
// known of one of the gaps.
func withoutEngine(gaps []sandbox.Gap) string {
	var remedies []string
	for _, gap := range gaps {
		remedy := strings.TrimSuffix(strings.TrimSuffix(gap.Remedy, ", or set sandbox.backend to docker"), ", or sandbox.backend to docker")
		if remedy == "remove it" {
			remedy = "remove " + gap.Field
		}
		if remedy == "" {
			return ""
		}
		if !slices.Contains(remedies, remedy) {
			remedies = append(remedies, remedy)
		}
	}
	return strings.Join(remedies, "; ")
}

// startDocker is what to do about an engine that is not there.
const startDocker = "start Docker, or set DOCKER_HOST or sandbox.backend"

// limitFields are the settings for which a user without privileges needs a control
// group.
var limitFields = []string{"docker.memory", "docker.memorySwap", "docker.cpus", "docker.pidsLimit"}

// limitRemedy is the remedy of gaps that are all limits with the same one, ""
// otherwise: then an engine is the shorter way.
func limitRemedy(gaps []sandbox.Gap) string {
	for _, gap := range gaps {
		if gap.Remedy != gaps[0].Remedy || !slices.Contains(limitFields, gap.Field) {
			return ""
		}
	}
	return gaps[0].Remedy
}

// silenceHint is what to do about an engine that does not answer.
func silenceHint(host string, err error) string {
	_, isUnknown := errors.AsType[net.UnknownNetworkError](err)
	switch path, isPath := strings.CutPrefix(host, "unix://"); {
	case isUnknown || errors.Is(err, errNoAddress):
		return "set DOCKER_HOST to unix:///PATH or tcp://HOST:PORT"
	case isPath && errors.Is(err, fs.ErrPermission):
		return "join the group that owns " + path + " (often docker), or run as a user who may use it"
	}
	return startDocker
}

// Require turns a choice that found nothing into an error.
func (b Backend) Require() (string, error) {
	if b.wrong {
		return "", errhint.With(fmt.Errorf("%s: %w", b.Reason, sandbox.ErrUnsupported), b.hint)
	}
	if b.Effective == "" {
		hint := cmp.Or(b.hint, "set sandbox.backend to auto, linux, docker or podman")
		return "", errhint.With(fmt.Errorf("%s: %w", b.Reason, sandbox.ErrUnavailable), hint)
	}
	return b.Effective, nil
}

var errNoAddress = errors.New("not an address")

// ProbeEngine reports whether something accepts connections at an engine's address.
func ProbeEngine(host string) error {
	network, address, ok := strings.Cut(host, "://")
	if !ok {
		return errNoAddress
	}
	conn, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(context.Background(), network, address)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			return op.Err
		}
		return err
	}
	return conn.Close()
}

// EngineHost is where an engine listens: the variable its own tools use, else
// the usual sockets of the system and of the user, the first that exists.
func (s *Settings) EngineHost(backend string) string {
	variable, usual := "DOCKER_HOST", []string{"/var/run/docker.sock", s.userSocket("docker.sock")}
	if backend == BackendPodman {
		variable, usual = "CONTAINER_HOST", []string{"/run/podman/podman.sock", s.userSocket("podman/podman.sock")}
	}
	if host := s.Getenv(variable); host != "" {
		return host
	}
	for _, path := range usual {
		if _, err := os.Stat(path); err == nil {
			return "unix://" + path
		}
	}
	return "unix://" + usual[0]
}

func (s *Settings) userSocket(name string) string {
	return filepath.Join(s.Getenv("XDG_RUNTIME_DIR"), name)
}

// runtimes opens each backend once, when it is first needed.
type runtimes struct {
	in   *Installation
	mu   sync.Mutex
	open map[string]*docker.Runtime
	// others are those that the program brought along.
	others map[string]sandbox.Runtime
}

// Runtime opens the runtime of a backend.
func (a *Installation) Runtime(ctx context.Context, backend string) (sandbox.Runtime, error) {
	return a.runtimes.get(ctx, backend)
}

// ContainerEngine is the runtime of a container engine.
type ContainerEngine = docker.Runtime

// EngineImage describes an image that a container engine has.
type EngineImage = docker.ImageInfo

// Engine opens the container engine of a backend that has one.
func (a *Installation) Engine(ctx context.Context, backend string) (*ContainerEngine, error) {
	return a.runtimes.docker(ctx, backend)
}

func (r *runtimes) get(ctx context.Context, backend string) (sandbox.Runtime, error) {
	if backend == BackendLinux {
		rt, err := r.in.linux()
		if err != nil {
			return nil, err
		}
		return rt.For(r.in.ID), nil
	}
	if open := r.in.Runtimes[backend]; open != nil {
		return r.brought(ctx, backend, open)
	}
	return r.docker(ctx, backend)
}

func (r *runtimes) docker(ctx context.Context, backend string) (*docker.Runtime, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rt := r.open[backend]; rt != nil {
		return rt, nil
	}
	if r.in.Runtimes[backend] != nil {
		return nil, fmt.Errorf("the %s backend has no container engine: %w", backend, sandbox.ErrUnsupported)
	}
	if backend == BackendKubernetes {
		return nil, errhint.With(fmt.Errorf("%s: %w", kubeMissing, sandbox.ErrUnsupported), kubeRemedy)
	}
	if backend != BackendDocker && backend != BackendPodman {
		return nil, fmt.Errorf("backend %q: %w", backend, sandbox.ErrUnsupported)
	}
	host := r.in.EngineHost(backend)
	version, err := r.in.Registry.Fact(ctx, versionFact(host))
	if err != nil {
		return nil, err
	}
	rt, err := docker.New(docker.Options{
		Host: host, Flavor: docker.Flavor(backend), Installation: r.in.ID, StateDir: r.in.Paths.AtollState,
		APIVersion: version, Guest: guestbin.For, Logger: r.in.Logger,
	})
	if err != nil {
		return nil, err
	}
	if r.open == nil {
		r.open = map[string]*docker.Runtime{}
	}
	r.open[backend] = rt
	if version == "" {
		return rt, r.remember(ctx, rt, host)
	}
	return rt, nil
}

func versionFact(host string) string { return "api-version:" + host }

// remember keeps the version that the engine and we agreed on, so that the next
// process need not ask. If the engine is exchanged, the runtime finds out.
func (r *runtimes) remember(ctx context.Context, rt *docker.Runtime, host string) error {
	version, err := rt.APIVersion(ctx)
	if err != nil {
		return err
	}
	return r.in.Registry.SetFact(ctx, versionFact(host), version)
}

func (r *runtimes) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rt := range r.open {
		_ = rt.Close()
	}
	for _, rt := range r.others {
		if closer, ok := rt.(io.Closer); ok {
			_ = closer.Close()
		}
	}
}
