package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/atoll-run/atoll/internal/cli"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/modelcmd"
)

func main() { os.Exit(run()) }

// In the first moment memory is not collected often: most commands are over by
// then, and would spend a good part of their time on it.
const (
	firstMoment    = time.Second
	collectRarely  = 800 // percent of growth
	collectAsUsual = 100
)

func run() int {
	// Package log writes to it too, and net/http prints answers there that it did not ask
	// for: they may hold a key.
	slog.SetDefault(slog.New(slog.DiscardHandler)) //nolint:forbidigo // nothing of ours uses it
	debug.SetGCPercent(collectRarely)
	time.AfterFunc(firstMoment, func() { debug.SetGCPercent(collectAsUsual) })
	ctx, stop := console.WithSignals(context.Background())
	defer stop()
	if filepath.Base(os.Args[0]) == "docker" {
		return modelcmd.Docker(ctx, os.Args[1:], console.System())
	}
	return cli.Main(ctx, os.Args[1:], console.System())
}
