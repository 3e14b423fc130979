package linux_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/testkit/guestbuild"
)

// guestVariable tells processes that tests start where the guest is, so that
// they need not build it again, nor have a compiler.
const guestVariable = "ATOLL_TEST_GUEST"

// guestProgram is the guest, built once.
func guestProgram(t testing.TB) []byte {
	t.Helper()
	path := os.Getenv(guestVariable)
	if path == "" {
		path = guestbuild.Build(t)
		if err := os.Setenv(guestVariable, path); err != nil { //nolint:usetesting // for all tests of this process, and those that it starts
			t.Fatal(err)
		}
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// guestOf returns a guest program as the runtime takes it.
func guestOf(program []byte) (*guestbin.Guest, error) {
	return guestbin.New(bytes.NewReader(program), int64(len(program)))
}
