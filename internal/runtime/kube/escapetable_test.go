package kube

import (
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/escapetest"
)

// TestEscapePods: the attacks of every runtime, from a pod.
func TestEscapePods(t *testing.T) {
	s := clusterSettings(t)
	escapetest.Copies(t, escapetest.Subject{
		Open: func(t *testing.T, stateDir string) sandbox.Runtime {
			t.Helper()
			return testRuntimeOf(t, s, stateDir)
		},
		Backend: "kubernetes", Image: testImage, Slow: true, SharedUsers: true, BridgeInside: true,
	})
}
