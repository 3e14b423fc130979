package main

import (
	"context"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/guest/netclient"
)

// useNetwork does for the host what only a process inside can do.
func useNetwork(verb string, args []string) {
	within := netclient.ConnectTimeout
	if verb == "connect" && len(args) == 2 {
		var err error
		if within, err = time.ParseDuration(args[1]); err != nil || within <= 0 {
			fail(2, usage)
		}
		args = args[:1]
	}
	if len(args) != 1 {
		fail(2, usage)
	}
	if verb == "lookup" {
		if err := netclient.Lookup(context.Background(), args[0], os.Stdout); err != nil {
			fail(1, err.Error()+"\n")
		}
		return
	}
	if err := netclient.Connect(args[0], within, os.Stdin, os.Stdout); err != nil {
		fail(netclient.ExitCode(err), err.Error()+"\n")
	}
}
