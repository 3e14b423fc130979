// Atoll runs AI agents, and every tool they call, inside hardened sandboxes.
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := cli.WithSignals(context.Background())
	defer stop()
	if filepath.Base(os.Args[0]) == "docker" {
		return cli.Docker(ctx, os.Args[1:], cli.System())
	}
	return cli.Main(ctx, os.Args[1:], cli.System())
}
