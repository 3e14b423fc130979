package kube

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// TestClocksDiffer: the times that another gateway's clock has written into a Lease decide
// nothing. The sandbox stays with the gateway that has it until another connects.
func TestClocksDiffer(t *testing.T) {
	s := clusterSettings(t)
	gateway := func() *Runtime {
		r := testRuntimeOf(t, s, t.Name())
		r.owner = true
		return r
	}
	older, later := gateway(), gateway()
	inst, m := started(t, older, smallSpec("skewed"))
	answers(t, m, time.Minute)
	for name, shift := range map[string]time.Duration{"behind": -20 * 365 * 24 * time.Hour, "ahead": 20 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			setTimes(t, inst, time.Now().Add(shift))
			if state, err := inst.State(t.Context()); state != sandbox.StateRunning || err != nil {
				t.Errorf("%v, %v", state, err)
			}
			again, err := later.Open(t.Context(), "skewed")
			if err != nil || again.Seen().State != sandbox.StateRunning {
				t.Fatalf("%v, %v", again, err)
			}
			if err := m.Ping(t.Context()); err != nil {
				t.Errorf("the gateway that has the sandbox lost it: %v", err)
			}
		})
	}
	again, err := later.Open(t.Context(), "skewed")
	if err != nil {
		t.Fatal(err)
	}
	removeAtEnd(t, again) // the older one may not any more
	taken := machine.New(again.Dial, nil)
	defer taken.Close()
	answers(t, taken, time.Minute)
	if err := m.Ping(t.Context()); err == nil {
		t.Error("the older gateway still has its wire")
	}
}

// setTimes writes times of a clock into the Lease of a sandbox.
func setTimes(t *testing.T, i *Instance, now time.Time) {
	t.Helper()
	if err := i.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.advance(t.Context(), func(l *coordinationv1.Lease) {
		l.Spec.AcquireTime, l.Spec.RenewTime = &metav1.MicroTime{Time: now}, &metav1.MicroTime{Time: now}
		l.Spec.LeaseDurationSeconds = new(int32(1))
	}); err != nil {
		t.Fatal(err)
	}
}
