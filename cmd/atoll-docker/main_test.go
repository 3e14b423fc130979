package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/buildtest"
)

// programs is a directory with atoll and atoll-docker, as `make build` makes
// them, for every user.
var programs string

func TestMain(m *testing.M) {
	code, err := withPrograms(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withPrograms builds the programs, and removes them after the tests.
func withPrograms(tests func() int) (code int, err error) {
	if programs, err = os.MkdirTemp("", "atoll"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(programs)) }()
	if err := os.Chmod(programs, 0o755); err != nil {
		return 0, err
	}
	ctx := context.Background()
	if err := buildtest.Programs(ctx, programs, "atoll", "atoll-docker"); err != nil {
		return 0, err
	}
	return tests(), nil
}
