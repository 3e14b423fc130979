package app_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// strangers are containers that look like ours and are not: one that OpenClaw
// made, one of another installation, one with an empty label, and one without
// any label under the name that our session wants.
func (s *site) strangers(name string) map[string]string {
	openClaw := map[string]string{"openclaw.sandbox": "1", "openclaw.sessionKey": "agent:main", "openclaw.createdAtMs": "1", "openclaw.configHash": "x"}
	other := map[string]string{sandbox.LabelInstallation: "SOMEBODYELSESINSTALLATION0", sandbox.LabelSandbox: "1", sandbox.LabelAgent: "main"}
	empty := map[string]string{sandbox.LabelInstallation: "", sandbox.LabelSandbox: "1"}
	ids := map[string]string{}
	for stranger, labels := range map[string]map[string]string{
		s.tag + "-agent-main-openclaw": openClaw, s.tag + "-agent-main-other": other, s.tag + "-agent-main-empty": empty, name: nil,
	} {
		ids[stranger] = s.engine.run(stranger, enginetest.TinyImage, labels).ID
	}
	return ids
}

func TestForeignContainersStayUntouched(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	taken := session("taken")
	strangers := s.strangers(s.name(a, taken))
	ours := s.provide(a, session("ours"))

	_, err := a.Provide(t.Context(), taken, provide.Options{})
	if _, typed := errors.AsType[*sandbox.ProvisionError](err); !typed || !errors.Is(err, sandbox.ErrForeign) {
		t.Errorf("a name that is taken: %v", err)
	}
	if hint := errhint.Of(err); !strings.Contains(hint, "docker rm") || !strings.Contains(hint, "containerPrefix") {
		t.Errorf("hint %q", hint)
	}
	list, total, err := a.List(t.Context(), 0)
	if err != nil || total != 1 || len(list) != 1 || list[0].ContainerName != ours.Name {
		t.Errorf("listed %+v of %d, %v", list, total, err)
	}
	ours.Release()

	// Everything that removes, at a time when everything is old and idle.
	a.Manager.Now = func() time.Time { return time.Now().Add(10000 * time.Hour) }
	// Besides our sandbox that is the copy that was prepared for the taken name.
	if removed, err := a.Prune(t.Context(), true); err != nil || len(removed) != 2 || removed[0].Entry.ContainerName != ours.Name || removed[1].Reason != "a private copy that no sandbox used" {
		t.Errorf("pruned %+v, %v", removed, err)
	}
	entries, err := a.Select(t.Context(), provide.Selector{All: true})
	if err != nil || len(entries) != 0 {
		t.Errorf("selected %+v, %v", entries, err)
	}
	s.wantUntouched(strangers)
}

// A row whose name somebody else has by now: ours is gone, theirs stays.
func TestForeignContainerUnderTheNameOfARow(t *testing.T) {
	t.Parallel()
	for _, phase := range []sandbox.Phase{sandbox.PhaseCreating, sandbox.PhaseReady, sandbox.PhaseRemoving} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			a := s.open()
			got := s.provide(a, session("ours"))
			got.Release()
			a.Manager.Close() // its wire would notice
			s.engine.remove(got.Name)
			if err := a.Manager.Registry.SetPhase(t.Context(), got.Name, phase); err != nil {
				t.Fatal(err)
			}
			stranger := map[string]string{got.Name: s.engine.run(got.Name, enginetest.TinyImage, nil).ID}
			if _, err := a.Prune(t.Context(), false); err != nil {
				t.Error(err)
			}
			if rows := s.rows(a); len(rows) != 0 {
				t.Errorf("row %+v", rows[0])
			}
			if files := filesIn(t, filepath.Join(s.state, "wire")); len(files) != 1 {
				t.Errorf("wire directories are left: %v", files)
			}
			if _, err := a.Provide(t.Context(), session("ours"), provide.Options{}); !errors.Is(err, sandbox.ErrForeign) {
				t.Errorf("provide: %v", err)
			}
			s.wantUntouched(stranger)
		})
	}
}

func (s *site) wantUntouched(ids map[string]string) {
	s.t.Helper()
	for name, id := range ids {
		if now := s.engine.inspect(name); now == nil || now.ID != id || !now.State.Running {
			s.t.Errorf("%s was touched: %+v", name, now)
		}
	}
}
