// Command atoll-docker is the docker command line, over Atoll's sandboxes.
package main

import (
	"context"
	"os"

	"github.com/atoll-run/atoll/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := cli.WithSignals(context.Background())
	defer stop()
	return cli.Docker(ctx, os.Args[1:], cli.System())
}
