package modelcmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/secret"
)

type proxyOptions struct {
	listen, metrics string
	trusted         bool
}

// NewProxyCommand returns the command `atoll proxy`.
func NewProxyCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o proxyOptions
	cmd := &cobra.Command{
		Use:   "proxy --listen unix:PATH|HOST:PORT [--metrics unix:PATH|HOST:PORT]",
		Short: "Serve models to programs that Atoll did not start",
		Long: `Serve models to programs that Atoll did not start, such as a gateway in a
container: the key stays here, and every call is judged, counted and recorded.

Callers send a token of atoll token create as their key. It says whose call it
is; what it leaves open the caller may say in x-litellm-end-user-id,
x-cogni-run-id and x-litellm-spend-logs-metadata, and nothing else.`,
		Example: `  atoll proxy --listen unix:/run/atoll/llm.sock
  atoll proxy --listen 127.0.0.1:8080 --metrics 127.0.0.1:9090`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.listen == "" {
				return console.Usage(cmd, errors.New("--listen is missing"))
			}
			return e.runProxy(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "", "`address` to serve: unix:PATH or HOST:PORT (required)")
	flags.StringVar(&o.metrics, "metrics", "", "`address` to serve /metrics for Prometheus: another than --listen (default: nowhere)")
	flags.BoolVar(&o.trusted, "trusted-network", false, "serve an address that is not loopback: only trusted machines can reach it")
	return cmd
}

func (e *env) runProxy(ctx context.Context, o proxyOptions) error {
	if err := secret.Harden(); err != nil {
		return err
	}
	debug.SetGCPercent(proxy.GCPercent)
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	models, err := a.Models.OpenProxy(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(e.serveModels(ctx, a, models, &o), models.Close()); err != nil {
		return err
	}
	fmt.Fprintln(e.Err, "stopped: every request is settled and recorded")
	return nil
}

// serveModels serves until the context ends or a listener fails.
func (e *env) serveModels(ctx context.Context, a *app.App, models *service.Proxy, o *proxyOptions) error {
	l, err := o.open(ctx, o.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	served := make(chan error, 2)
	if o.metrics != "" {
		m, err := o.open(ctx, o.metrics)
		if err != nil {
			return err
		}
		server := metricsServer(a)
		defer server.Close()
		go func() { served <- server.Serve(m) }()
	}
	go func() { served <- models.Serve(l, models.AuthenticateByToken()) }()
	fmt.Fprintln(e.Err, "serving models on", o.listen)
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// metricsServer lets Prometheus read, on an address of its own: those who call
// models must not see what others spend.
func metricsServer(a *app.App) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.Models.Metrics())
	return &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
}

// open listens on the address. A socket belongs to this user alone.
func (o *proxyOptions) open(ctx context.Context, address string) (net.Listener, error) {
	path, isSocket := strings.CutPrefix(address, "unix:")
	if !isSocket {
		if err := o.checkAddress(address); err != nil {
			return nil, err
		}
		return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

// removeStale removes a socket that no process listens on.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return nil //nolint:nilerr // listening will say what is wrong with it
	}
	if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path); err == nil {
		conn.Close()
		return errhint.With(fmt.Errorf("%s is served already", path), "stop the other one, or choose another path")
	}
	return os.Remove(path)
}

// checkAddress refuses to serve plain HTTP where anybody could listen in.
func (o *proxyOptions) checkAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return console.WithCode(console.ExitUsage, errhint.With(fmt.Errorf("%q is not an address", address), "write unix:PATH or HOST:PORT"))
	}
	if at, err := netip.ParseAddr(host); host == "localhost" || err == nil && at.IsLoopback() || o.trusted {
		return nil
	}
	return console.WithCode(console.ExitDenied, errhint.With(fmt.Errorf("%s is not a loopback address, and what is served is not encrypted", address),
		"serve a socket or 127.0.0.1, or say --trusted-network"))
}
