//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "atoll-kube: sandboxes are made from Linux; use `atoll vm`, or --gateway")
	os.Exit(1)
}
