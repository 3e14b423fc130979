// Package need says what a test needs that not every machine has: root, an
// engine, a program. Where it is missing the test is skipped, so that
// `go test ./...` is useful to anyone; with ATOLL_TEST_ALL set, as `make test`
// does, it fails, so that nothing is left out unnoticed. The same variable chooses
// between a few rounds of a test and all of them.
package need

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
)

// All is the environment variable under which a missing need is a failure.
const All = "ATOLL_TEST_ALL"

// Root leaves the test out unless it runs as root; why says what root does.
func Root(tb testing.TB, why string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Missing(tb, errors.New("this test needs root: "+why))
	}
}

// Program returns the path of a program, and leaves the test out if it is not
// installed; the package is the one that scripts/deps.sh installs.
func Program(tb testing.TB, name, pkg string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(tb, errors.New("this test needs "+name+", of the package "+pkg+": run scripts/deps.sh"))
	}
	return path
}

// Kubeconfig is the environment variable with the path of the kubeconfig of a cluster for
// tests, which scripts/test-cluster.sh starts.
const Kubeconfig = "ATOLL_TEST_KUBECONFIG"

// Cluster returns that path, and leaves the test out where there is none.
func Cluster(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv(Kubeconfig)
	if path == "" {
		Missing(tb, errors.New(`this test needs a cluster: run scripts/test-cluster.sh up, then eval "$(scripts/test-cluster.sh env)"`))
	}
	return path
}

// Time leaves a test out that takes long or calls services of others, unless
// everything is run or tests are chosen by -run; why says what takes the time.
func Time(tb testing.TB, why string) {
	tb.Helper()
	if !Everything() {
		tb.Skip("this test takes long: " + why + ": run make test, or choose it by -run")
	}
}

// Rounds returns how often a test repeats itself: few times, or all where
// everything is run or tests are chosen by -run.
func Rounds(few, all int) int {
	if Everything() {
		return all
	}
	return few
}

// Everything reports whether no test may be shortened.
func Everything() bool {
	chosen := flag.Lookup("test.run")
	return os.Getenv(All) != "" || chosen != nil && chosen.Value.String() != ""
}

// Missing leaves the test out because of what it lacks, and says how to get it.
func Missing(tb testing.TB, err error) {
	tb.Helper()
	if hint := errhint.Of(err); hint != "" {
		err = fmt.Errorf("%w: %s", err, hint)
	}
	if os.Getenv(All) != "" {
		tb.Fatal(err)
	}
	tb.Skip(err)
}
