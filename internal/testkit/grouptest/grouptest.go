// Package grouptest tells whether the user who runs the tests can make control
// groups, which limits take: root can, and who was delegated some.
package grouptest

import (
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// Missing is nil if processes, memory and CPU time can be limited.
func Missing() error { return missing(cgroups.Limits{Pids: 64, Memory: 64 << 20, CPUs: 1}) }

func missing(limits cgroups.Limits) error {
	host, err := cgroups.Find()
	if err != nil {
		return err
	}
	for _, m := range host.Missing(limits) {
		return errors.Join(errors.New("this test needs control groups: run it as root"), m.Err)
	}
	return nil
}

// Need leaves the test out unless processes, memory and CPU time can be limited.
func Need(tb testing.TB) {
	tb.Helper()
	if err := Missing(); err != nil {
		need.Missing(tb, err)
	}
}
