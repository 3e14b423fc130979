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
	const hour, week = 60 * 60, 7 * 24 * 60 * 60
	for _, c := range []struct {
		spec sandbox.Spec
		want int64 // 0: none
	}{
		{sandbox.Spec{}, 0}, {sandbox.Spec{MaxAgeSec: week}, week + hour}, {sandbox.Spec{MaxAgeSec: week, Kind: sandbox.KindPool}, 2*week + hour},
	} {
		got := deadlineOf(&c.spec)
		if (got == nil) != (c.want == 0) || got != nil && *got != c.want {
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
	spec.MaxAgeSec = 24 * 60 * 60
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
