package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// oldRegistry is a registry file with one entry, as earlier programs write it.
func oldRegistry(name, more string) string {
	return fmt.Sprintf(`{"entries":[{"containerName":%q,"sessionKey":"agent:main","createdAtMs":1700000000000,`+
		`"lastUsedAtMs":1700000001000,"image":"old:1","configHash":"abc","somethingElse":{"a":[1]}%s}]}`, name, more)
}

// The three files of earlier programs are taken over, each once. Their
// containers are listed and otherwise left alone; recreate removes the row alone.
func TestOldRegistriesAreTakenOverOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	files := map[string]string{"sandbox/containers.json": "one", "sandbox/browsers.json": "two", "sandbox-registry.json": "three"}
	strangers := map[string]string{}
	for file, name := range files {
		container := s.tag + "-" + name
		s.write(filepath.Join(s.state, file), oldRegistry(container, `,"cdpPort":9222,"noVncPort":6080`))
		strangers[container] = s.engine.run(container, enginetest.TinyImage, map[string]string{"openclaw.sandbox": "1"}).ID
	}
	a := s.open()
	want := []string{
		s.tag + "-one sandbox docker main true", s.tag + "-three sandbox docker main true", s.tag + "-two browser docker main true",
	}
	if diff := cmp.Diff(want, s.imported(a)); diff != "" {
		t.Errorf("taken over (-want +got):\n%s", diff)
	}
	list, _, err := a.List(t.Context(), 0)
	if err != nil || len(list) != 3 {
		t.Fatalf("listed %d, %v", len(list), err)
	}
	for _, l := range list {
		if l.Problem == "" || l.Running || l.CreatedAtMs != 1700000000000 || l.LastUsedAtMs != 1700000001000 || l.ConfigHash != "abc" || l.CDPPort != 9222 || l.NoVNCPort != 6080 {
			t.Errorf("listed %+v", l.Entry)
		}
	}
	a.Manager.Now = func() time.Time { return time.Now().Add(10000 * time.Hour) }
	if removed, err := a.Prune(t.Context(), true); len(removed) != 0 || err != nil {
		t.Errorf("pruned %+v, %v", removed, err)
	}
	for _, selector := range []provide.Selector{{All: true}, {All: true, Browser: true}, {Agent: "main"}, {Session: "agent:main"}} {
		if chosen, err := a.Select(t.Context(), selector); len(chosen) == 0 || err != nil {
			t.Errorf("%+v selects nothing, %v", selector, err)
		}
	}
	// A row that a person removes does not come back, whatever the file says.
	one, err := a.Manager.Registry.Get(t.Context(), s.tag+"-one")
	if err != nil {
		t.Fatal(err)
	}
	if done := a.Recreate(t.Context(), one, true); done.Err != nil || done.Report.Discarded {
		t.Fatalf("%+v", done)
	}
	a.Close()
	s.write(filepath.Join(s.state, "sandbox/containers.json"), "by now this is nonsense")
	if diff := cmp.Diff(want[1:], s.imported(s.open())); diff != "" {
		t.Errorf("after the second start (-want +got):\n%s", diff)
	}
	s.wantUntouched(strangers)
}

// imported describes the rows that were taken over, in order of their names.
func (s *site) imported(a *app.App) (rows []string) {
	s.t.Helper()
	for _, r := range s.rows(a) {
		rows = append(rows, fmt.Sprintf("%s %s %s %s %v", r.ContainerName, r.Kind, r.Backend, r.AgentID, r.Imported))
	}
	slices.Sort(rows)
	return rows
}

func TestOldRegistryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, path string) error{
		"half a file":        content(`{"entries":[{"containerName":"a"`),
		"not an object":      content(`[]`),
		"a name is missing":  content(`{"entries":[{"sessionKey":"agent:main"}]}`),
		"a number is a text": content(`{"entries":[{"containerName":"a","createdAtMs":"yesterday"}]}`),
		"empty":              content(""),
		"a directory":        func(_ *testing.T, path string) error { return os.MkdirAll(path, 0o755) },
		"a pipe":             func(_ *testing.T, path string) error { return unix.Mkfifo(path, 0o644) },
		"far too large": func(_ *testing.T, path string) error {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(path, 1<<30)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			path := filepath.Join(s.state, "sandbox", "browsers.json")
			s.mkdir(filepath.Dir(path))
			s.write(filepath.Join(s.state, "sandbox", "containers.json"), oldRegistry(s.tag+"-good", ""))
			if err := spoil(t, path); err != nil {
				t.Fatal(err)
			}
			_, err := s.try()
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(errhint.Of(err), "repair the file, or move it away") {
				t.Fatalf("%v (hint: %s)", err, errhint.Of(err))
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if rows := s.imported(s.open()); len(rows) != 1 {
				t.Errorf("after it was moved away: %v", rows)
			}
		})
	}
}

func content(text string) func(*testing.T, string) error {
	return func(_ *testing.T, path string) error { return os.WriteFile(path, []byte(text), 0o644) }
}

// An old row has the name that our session wants. If its container is there,
// the name is taken; if it is gone, the name is ours.
func TestOldRowUnderOurName(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	name := s.name(s.open(), session("ours"))
	s.write(filepath.Join(s.state, "sandbox", "containers.json"), oldRegistry(name, ""))
	a := s.open()
	stranger := s.engine.run(name, enginetest.TinyImage, map[string]string{"openclaw.sandbox": "1"})
	if _, err := a.Provide(t.Context(), session("ours"), provide.Options{}); err == nil {
		t.Error("a container of OpenClaw's was used")
	}
	s.wantUntouched(map[string]string{name: stranger.ID})
	s.engine.remove(stranger.ID)
	got := s.provide(a, session("ours"))
	if row, err := a.Manager.Registry.Get(t.Context(), name); !got.Created || err != nil || row.Imported || row.Phase != sandbox.PhaseReady {
		t.Errorf("created %v, row %+v, %v", got.Created, row, err)
	}
}

// OpenClaw's own registry is read where its configuration is the one in force.
func TestOldRegistryOfOpenClaw(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]int{"": 0, "OPENCLAW_CONFIG_PATH": 1} {
		t.Run("named by "+variable, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			theirs := filepath.Join(s.dir, "openclaw-state")
			s.env["OPENCLAW_STATE_DIR"] = theirs
			if variable != "" {
				s.env[variable] = s.configFile()
			}
			s.write(filepath.Join(theirs, "sandbox", "containers.json"), oldRegistry(s.tag+"-theirs", ""))
			if rows := s.imported(s.open()); len(rows) != want {
				t.Errorf("taken over: %v, want %d", rows, want)
			}
		})
	}
}
