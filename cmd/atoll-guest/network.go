package main

import (
	"context"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/guest/netclient"
)

// useNetwork does for the host what only a process inside can do.
func useNetwork(verb string, args []string) {
	ctx := context.Background()
	if verb == "connect" && len(args) == 2 {
		limit, err := time.ParseDuration(args[1])
		if err != nil || limit <= 0 {
			fail(2, usage)
		}
		limited, cancel := context.WithTimeout(ctx, limit) // of connecting only
		defer cancel()
		ctx, args = limited, args[:1]
	}
	if len(args) != 1 {
		fail(2, usage)
	}
	var err error
	if verb == "lookup" {
		err = netclient.Lookup(ctx, args[0], os.Stdout)
	} else {
		err = netclient.Connect(ctx, args[0], os.Stdin, os.Stdout)
	}
	if err != nil {
		fail(1, err.Error()+"\n")
	}
}
