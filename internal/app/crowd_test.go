package app_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Real processes that know nothing of each other want the same sandbox at the
// same moment, in a state directory that does not exist yet.
func TestProcessesAtOnceMakeOneSandbox(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.set("agents.defaults.sandbox.docker.setupCommand", "echo x >>/workspace/setups")
			processes, outputs := make([]*exec.Cmd, n), make([]bytes.Buffer, n)
			for i := range processes {
				processes[i] = s.process(order{Session: session("crowd").SessionKey, Script: "cat /workspace/setups"})
				processes[i].Stdout, processes[i].Stderr = &outputs[i], &outputs[i]
			}
			var wg sync.WaitGroup
			for i, p := range processes {
				wg.Go(func() {
					if err := p.Run(); err != nil {
						t.Errorf("%v: %s", err, outputs[i].String())
					}
				})
			}
			wg.Wait()
			created := 0
			for i := range outputs {
				switch outputs[i].String() {
				case "created=true x\n":
					created++
				case "created=false x\n":
				default:
					t.Errorf("a process says %q", outputs[i].String())
				}
			}
			if rows, containers := s.rows(s.open()), s.ours(); created != 1 || len(rows) != 1 || len(containers) != 1 {
				t.Errorf("created %d times; rows %d, containers %d", created, len(rows), len(containers))
			}
		})
	}
}

// While a process uses a sandbox nobody prunes or recreates it. When the
// process is killed its lease is gone with it.
func TestLeaseEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	kill := s.hold(session("held").SessionKey)
	later := func() time.Time { return time.Now().Add(1000 * time.Hour) }
	a := s.open()
	a.Manager.Now = later
	if removed, err := a.Prune(t.Context(), false); len(removed) != 0 || err != nil {
		t.Errorf("pruned while in use: %+v, %v", removed, err)
	}
	entry := s.rows(a)[0]
	if r := a.Recreate(t.Context(), entry, false); !strings.Contains(r.Error, sandbox.ErrBusy.Error()) {
		t.Errorf("recreate while in use: %v", r.Err)
	}
	s.set("agents.defaults.sandbox.docker.env", map[string]string{"CHANGED": "yes"})
	changed := s.open()
	changed.Manager.Now = later
	kept := s.provide(changed, session("held"))
	if kept.Created || !strings.Contains(strings.Join(kept.Notices, "\n"), "atoll sandbox recreate") {
		t.Errorf("created %v, notices %q", kept.Created, kept.Notices)
	}
	kept.Release()
	kill()
	if removed, err := a.Prune(t.Context(), false); len(removed) != 1 || err != nil || removed[0].Err != nil {
		t.Errorf("after the process was killed: %+v, %v", removed, err)
	}
	if left := s.ours(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}
