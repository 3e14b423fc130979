package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// enginePatience is how long an engine has to answer.
const enginePatience = 5 * time.Second

// ErrNoEngine means that a side of the benchmark is missing.
var ErrNoEngine = errors.New("this benchmark measures a container engine too, and none answers")

// findEngine looks for the engine that a benchmark would use.
func findEngine(ctx context.Context, o Options) error {
	settings, err := provide.Load(provide.LoadOptions{Getenv: o.Getenv, ConfigPath: o.Config})
	if err != nil {
		return err
	}
	return RequireEngine(ctx, settings.EngineHost("docker"))
}

// RequireEngine asks the engine at host for a sign of life.
func RequireEngine(ctx context.Context, host string) error {
	err := pingEngine(ctx, host)
	if err == nil {
		return nil
	}
	return errhint.With(fmt.Errorf("%w at %s: %w", ErrNoEngine, host, err),
		"start Docker with `systemctl start docker`, set DOCKER_HOST to the socket of an engine, or bring one in a checkout of Atoll with `scripts/test-engine.sh up`")
}

func pingEngine(ctx context.Context, host string) error {
	network, address, ok := strings.Cut(host, "://")
	if !ok {
		return errors.New("it is no address such as unix:///var/run/docker.sock")
	}
	ctx, cancel := context.WithTimeout(ctx, enginePatience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/_ping", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer response.Body.Close() //nolint:errcheck // only the status counts
	if response.StatusCode != http.StatusOK {
		return errors.New("it answers " + response.Status)
	}
	return nil
}
