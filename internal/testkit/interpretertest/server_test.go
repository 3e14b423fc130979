package interpretertest_test

import (
	"os/exec"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// tests has the tests of the server, which need Python alone.
const tests = "../../../images/code-interpreter/tests"

// The server keeps its bounds, and does as it should with kernels that do anything.
func TestServer(t *testing.T) {
	t.Parallel()
	need.Program(t, "/usr/bin/python3", "python3")
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-B", "-W", "error", "-m", "unittest", "discover", "-p", "test_*.py")
	cmd.Dir = tests
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
