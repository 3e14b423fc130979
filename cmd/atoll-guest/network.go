package main

import (
	"context"
	"os"

	"github.com/atoll-run/atoll/internal/guest/netclient"
)

// useNetwork does for the host what only a process inside can do.
func useNetwork(verb string, args []string) {
	if len(args) != 1 {
		fail(2, usage)
	}
	var err error
	if verb == "lookup" {
		err = netclient.Lookup(context.Background(), args[0], os.Stdout)
	} else {
		err = netclient.Connect(context.Background(), args[0], os.Stdin, os.Stdout)
	}
	if err != nil {
		fail(1, err.Error()+"\n")
	}
}
