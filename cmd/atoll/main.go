// Atoll runs AI agents, and every tool they call, inside hardened sandboxes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/atoll-run/atoll/internal/cli"
)

func main() {
	// A second signal ends the program at once: stop restores the default.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], cli.System()))
}
