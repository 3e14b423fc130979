package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

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

// TestProbeTargets: an API server on loopback, as of a tunnel, is no address to try from inside.
func TestProbeTargets(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{HostIP: "10.0.0.7"}}
	for host, want := range map[string][]string{
		"https://10.0.0.1:6443":       {"1.1.1.1:443", "10.0.0.7:10250", "10.0.0.1:6443"},
		"https://10.0.0.1":            {"1.1.1.1:443", "10.0.0.7:10250", "10.0.0.1:443"},
		"https://127.0.0.1:6443":      {"1.1.1.1:443", "10.0.0.7:10250"},
		"https://[::1]:6443":          {"1.1.1.1:443", "10.0.0.7:10250"},
		"https://[::ffff:127.1.2.3]/": {"1.1.1.1:443", "10.0.0.7:10250"},
	} {
		if got := probeTargets(t.Context(), &cluster{config: &rest.Config{Host: host}}, pod); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	for _, host := range []string{"https://10.0.0.1", "https://127.0.0.1:6443"} { // one target alone says too little
		if got := probeTargets(t.Context(), &cluster{config: &rest.Config{Host: host}}, nil); len(got) != 2 {
			t.Errorf("without a node: %v", got)
		}
	}
}
