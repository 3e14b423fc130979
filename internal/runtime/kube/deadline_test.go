package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

func TestDeadlineOfPods(t *testing.T) {
	week := 7 * 24 * time.Hour
	for _, c := range []struct {
		spec sandbox.Spec
		want time.Duration // 0: none
	}{
		{sandbox.Spec{}, 0}, {sandbox.Spec{MaxAge: week}, week + time.Hour}, {sandbox.Spec{MaxAge: week, Kind: sandbox.KindPool}, 2*week + time.Hour},
	} {
		got := deadlineOf(&c.spec)
		if (got == nil) != (c.want == 0) || got != nil && time.Duration(*got)*time.Second != c.want {
			t.Errorf("%+v: %v", c.spec, got)
		}
	}
}

// TestDeadline: a pod has the age limit of its sandbox and an hour; when that is over the
// cluster ends it, with the reason.
func TestDeadline(t *testing.T) {
	c := clustertest.Shared(t)
	r := testRuntime(t, clusterSettings(t))
	spec := smallSpec("old")
	spec.MaxAge = 24 * time.Hour
	inst, _ := started(t, r, spec)
	if seconds := inst.currentPod().Spec.ActiveDeadlineSeconds; seconds == nil || *seconds != 25*60*60 {
		t.Errorf("its deadline is %v", seconds)
	}
	c.Kubectl(t, "", "-n", r.settings.Namespace, "patch", "pod", inst.currentPod().Name, "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":1}}`)
	if err := dead(t, inst, time.Minute); !errors.Is(err, sandbox.ErrNotRunning) || !strings.Contains(err.Error(), "DeadlineExceeded") {
		t.Errorf("a dial ends with %v", err)
	}
	removedWhole(t, r, inst)
}
