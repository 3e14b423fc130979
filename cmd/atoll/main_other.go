//go:build !linux

package main

import (
	"context"
	"os"
	"runtime"

	"github.com/atoll-run/atoll/internal/cli/nonlinux"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := nonlinux.WithSignals(context.Background())
	defer stop()
	home, _ := os.UserHomeDir() // without one, a path that begins with ~ is refused
	return nonlinux.Main(ctx, os.Args[1:], &nonlinux.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Home: home, System: runtime.GOOS})
}
