package kube

import (
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// probeKnows fails unless only a connection that is kept from being made is a closed network
// to the probe: a sandbox without a route, and an address that refuses, say nothing about a
// policy.
func probeKnows(t *testing.T, r *Runtime, inst *Instance, m *machine.Machine) {
	t.Helper()
	targets := probeTargets(t.Context(), r.known, inst.currentPod())
	if len(targets) != 3 {
		t.Errorf("targets %v", targets)
	}
	if reached, err := firstReached(t.Context(), m, networkOwn, targets); reached != "" || err != nil {
		t.Errorf("own: %q, %v", reached, err)
	}
	_, err := firstReached(t.Context(), m, networkPolicy, targets)
	if !errors.Is(err, errNotKnown) || !strings.Contains(err.Error(), "no default route") {
		t.Errorf("policy: %v", err)
	}
	if failed := notClosed("", err); !errors.Is(failed, sandbox.ErrUnavailable) {
		t.Errorf("%v", failed)
	}
	if _, err := firstReached(t.Context(), m, networkOwn, []string{"127.0.0.1:1"}); !errors.Is(err, errNotKnown) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("refused: %v", err)
	}
}
