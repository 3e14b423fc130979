package kube

import (
	"flag"
	"os"
	"testing"
)

// parallelPods is how many tests run beside each other: they mostly wait for the cluster.
const parallelPods = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallelPods); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
