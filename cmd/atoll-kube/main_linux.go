package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/atoll-run/atoll/internal/cli"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/runtime/kube"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

func main() { os.Exit(run()) }

func run() int {
	slog.SetDefault(slog.New(slog.DiscardHandler)) //nolint:forbidigo // nothing of ours uses it; libraries do
	ctx, stop := console.WithSignals(context.Background())
	defer stop()
	t := console.System()
	t.Runtimes = map[string]provide.OpenRuntime{provide.BackendKubernetes: open}
	return cli.Main(ctx, os.Args[1:], t)
}

// open opens the runtime with the settings of the installation.
func open(ctx context.Context, in *provide.Installation) (sandbox.Runtime, error) {
	settings, _ := in.Config.Kubernetes().Settings()
	starts, err := in.GatewayStarts(ctx)
	if err != nil {
		return nil, err
	}
	return kube.New(kube.Options{Settings: settings, Installation: in.ID, Owner: in.Owned, Starts: starts, Logger: in.Logger, Room: in.CheckRoom})
}
