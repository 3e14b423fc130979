package kube

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-run/atoll/internal/machine"
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

// TestEndedBeforeDeadline: a sandbox in use that nears its deadline is ended in order: its
// commands end with that reason, and its files are home before the cluster would end it.
func TestEndedBeforeDeadline(t *testing.T) {
	c := clustertest.Shared(t)
	r := testRuntime(t, clusterSettings(t))
	spec, home := workspaceSpec(t, "aged")
	spec.MaxAgeSec = 24 * 60 * 60
	inst, m := started(t, r, spec)
	shell(t, m, "echo changed >/workspace/file")
	ended := make(chan error, 1)
	go func() {
		_, err := m.Exec(context.WithoutCancel(t.Context()), &machine.Command{Argv: []string{"sleep", "300"}})
		ended <- err
	}()
	c.Kubectl(t, "", "-n", r.settings.Namespace, "patch", "pod", inst.currentPod().Name, "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":602}}`)
	select {
	case err := <-ended:
		if !errors.Is(err, machine.ErrTerminated) {
			t.Errorf("the command in it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the command in it goes on")
	}
	awaitGone(t, r)
	if text, err := os.ReadFile(filepath.Join(home, "file")); string(text) != "changed\n" || err != nil {
		t.Errorf("at home: %q, %v", text, err)
	}
	left, err := r.List(t.Context())
	if err != nil || len(left) != 1 || left[0].State != sandbox.StateDead || !strings.Contains(left[0].Problem, "age limit") || !strings.Contains(left[0].Problem, "was brought home") {
		t.Errorf("%+v, %v", left, err)
	}
	removedWhole(t, r, inst)
}

// TestPlannedEnds: what was planned for a pod happens once, at the last time that was planned,
// and not after the pod is gone.
func TestPlannedEnds(t *testing.T) {
	ends := newTerminations()
	happened := make(chan string, 4)
	plan := func(uid types.UID, in time.Duration, what string) {
		ends.plan(uid, time.Now().Add(in), func(context.Context) { happened <- what })
	}
	plan("gone", 50*time.Millisecond, "gone")
	ends.forget("gone")
	plan("changed", time.Hour, "late")
	plan("changed", time.Millisecond, "soon")
	if what := <-happened; what != "soon" {
		t.Error(what)
	}
	plan("left", time.Hour, "left")
	time.Sleep(100 * time.Millisecond)
	ends.close()
	if len(happened) > 0 {
		t.Errorf("%s happened too", <-happened)
	}
}
