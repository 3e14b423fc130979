package docker

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// minAPIVersion is the oldest API that has what we use; Docker 20.10 and
// Podman 4 speak it.
const minAPIVersion = "1.41"

// engine is the connection to one engine, and the version spoken on it.
type engine struct {
	host   string
	flavor Flavor

	mu      sync.Mutex
	settled *client.Client // nil until the version is known
}

func newEngine(host string, flavor Flavor, version string) (*engine, error) {
	e := &engine{host: host, flavor: flavor}
	if version == "" {
		_, err := client.ParseHostURL(host)
		return e, err
	}
	if versions.LessThan(version, minAPIVersion) {
		return nil, e.tooOld(version)
	}
	cli, err := client.New(client.WithHost(host), client.WithAPIVersion(version))
	if err != nil {
		return nil, fmt.Errorf("engine %s: %w", host, err)
	}
	e.settled = cli
	return e, nil
}

// client returns a client whose version is settled.
func (e *engine) client(ctx context.Context) (*client.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.settled != nil {
		return e.settled, nil
	}
	return e.negotiate(ctx)
}

// negotiate settles on the newest version that both sides know. e.mu is held.
func (e *engine) negotiate(ctx context.Context) (*client.Client, error) {
	cli, err := client.New(client.WithHost(e.host))
	if err != nil {
		return nil, fmt.Errorf("engine %s: %w", e.host, err)
	}
	ping, err := cli.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if err != nil {
		_ = cli.Close()
		return nil, e.explain(err)
	}
	if ping.APIVersion == "" || versions.LessThan(ping.APIVersion, minAPIVersion) {
		_ = cli.Close()
		return nil, e.tooOld(ping.APIVersion)
	}
	e.settled = cli
	return cli, nil
}

// renegotiate forgets the version of a client that the engine refused, unless
// someone else already did.
func (e *engine) renegotiate(ctx context.Context, refused *client.Client) (*client.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.settled != refused && e.settled != nil {
		return e.settled, nil
	}
	e.settled = nil
	_ = refused.Close()
	return e.negotiate(ctx)
}

func (e *engine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.settled == nil {
		return nil
	}
	return e.settled.Close()
}

func (e *engine) tooOld(version string) error {
	return errhint.With(fmt.Errorf("engine %s speaks API version %q, at least %s is needed: %w", e.host, version, minAPIVersion, sandbox.ErrUnsupported),
		"upgrade to Docker 20.10 or Podman 4, or newer")
}

// ask makes one call to the engine. A call that the engine refuses because of
// its version is repeated in the right one; it had no effect the first time.
func ask[T any](ctx context.Context, e *engine, call func(*client.Client) (T, error)) (T, error) {
	cli, err := e.client(ctx)
	if err != nil {
		var none T
		return none, err
	}
	answer, err := call(cli)
	if isVersionRefusal(err) {
		if cli, err = e.renegotiate(ctx, cli); err != nil {
			return answer, err
		}
		answer, err = call(cli)
	}
	return answer, e.explain(err)
}

// isVersionRefusal recognises an engine's only way of saying that it does not
// speak the version of the request: an invalid-argument error with this text.
func isVersionRefusal(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "client version") &&
		(strings.Contains(text, "is too new") || strings.Contains(text, "is too old"))
}
