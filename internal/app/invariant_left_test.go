package app_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// moment is when a process that provides a sandbox is killed: at a checkpoint of
// the Manager, or at a call to the engine, which the engine then gets or not.
type moment struct {
	name    string
	prepare func(*site) // what was there before; nil: nothing
	step    string
	call    *engineCall
	kept    bool // the sandbox was complete, and must be kept as it is
}

func moments() []moment {
	var all []moment
	for _, step := range []string{"before intent", "after intent", "after create", "after start", "after wire", "before setup", "after setup", "before ready", "after ready"} {
		all = append(all, moment{name: step, step: step, kept: step == "after ready"})
	}
	for _, step := range []string{"before remove", "after remove"} {
		all = append(all, moment{name: step, step: step, prepare: (*site).makeOutdated})
	}
	all = append(all, moment{name: "started again", step: "started again", prepare: (*site).makeStopped, kept: true})
	for _, call := range []engineCall{{http.MethodPost, "/containers/create", false}, {http.MethodPost, "/start", false}} {
		all = append(all, call.moments(nil)...)
	}
	remove := engineCall{method: http.MethodDelete}
	return append(all, remove.moments((*site).makeOutdated)...)
}

// moments are before and after the engine has done what it was asked.
func (c engineCall) moments(prepare func(*site)) []moment {
	lost, done := c, c
	done.carriedOut = true
	title := c.method + " " + c.path
	return []moment{
		{name: title + " is sent and lost", call: &lost, prepare: prepare},
		{name: title + " is carried out and not answered", call: &done, prepare: prepare},
	}
}

// Seen to fail without finishUnfinished in Manager.PruneIfDue (a half-made
// sandbox and its row stayed), and without the call of Sweep in Manager.strike
// (the wire's directory stayed).
func TestInvariant_NOTHING_LEFT_BEHIND(t *testing.T) {
	t.Parallel()
	for _, m := range moments() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.set("agents.defaults.sandbox.docker.setupCommand", "rm -f /workspace/done; sleep 0.05; echo done >/workspace/done")
			clean := s.emptyFootprint()
			if m.prepare != nil {
				m.prepare(s)
			}
			s.killAt(m)
			roots := s.containerRoots()
			s.nextStart(m)
			s.useAndDiscard()
			if diff := cmp.Diff(clean, s.footprint(roots)); diff != "" {
				t.Errorf("left behind (-clean +now):\n%s", diff)
			}
		})
	}
}

// emptyFootprint is that of an installation that has made a sandbox and removed
// it again, and of which nothing runs.
func (s *site) emptyFootprint() footprint {
	s.t.Helper()
	s.useAndDiscard()
	return s.footprint(nil)
}

// useAndDiscard is a whole life of the session's sandbox.
func (s *site) useAndDiscard() {
	s.t.Helper()
	a := s.open()
	defer a.Close()
	got := s.provide(a, session("victim"))
	if out := sh(s.t, got, "cat /workspace/done"); out != "done" {
		s.t.Errorf("the set-up is not complete: %q", out)
	}
	if list := s.ours(); len(list) != 1 {
		s.t.Errorf("%d containers, want one: %+v", len(list), list)
	}
	got.Release()
	if err := a.Discard(s.t.Context(), got.Plan); err != nil {
		s.t.Errorf("discard: %v", err)
	}
}

// makeOutdated leaves a sandbox that the next use replaces: its configuration
// has changed, and it was not used for a while.
func (s *site) makeOutdated() {
	s.t.Helper()
	a := s.open()
	defer a.Close()
	a.Manager.Now = func() time.Time { return time.Now().Add(-2 * sandbox.HotWindow) }
	s.provide(a, session("victim")).Release()
	s.set("agents.defaults.sandbox.docker.env", map[string]string{"CHANGED": "yes"})
}

// makeStopped leaves a sandbox that the next use starts.
func (s *site) makeStopped() {
	s.t.Helper()
	a := s.open()
	defer a.Close()
	got := s.provide(a, session("victim"))
	got.Release()
	s.engine.must(http.MethodPost, "/containers/"+got.Name+"/kill", "", nil)
}

// killAt lets a real process provide the sandbox, and ends it with SIGKILL.
func (s *site) killAt(m moment) {
	s.t.Helper()
	if m.call == nil {
		s.die(s.process(order{Session: session("victim").SessionKey, DieAt: m.step}))
		return
	}
	s.killAtCall(*m.call, order{Session: session("victim").SessionKey, Script: "true"})
}

// nextStart is the first thing that happens after the crash: somebody uses
// another sandbox of the installation. Whatever was left in the middle of
// something is gone by then, and what was complete works.
func (s *site) nextStart(m moment) {
	s.t.Helper()
	a := s.open()
	defer a.Close()
	neighbour := s.provide(a, session("neighbour"))
	name := s.name(a, session("victim"))
	container := s.engine.inspect(name)
	row, err := a.Manager.Registry.Get(s.t.Context(), name)
	switch {
	case m.kept && (container == nil || err != nil):
		s.t.Errorf("the complete sandbox was not kept: %v, row %v", container, err)
	case m.kept && row.Phase != sandbox.PhaseReady:
		s.t.Errorf("the complete sandbox is %q", row.Phase)
	case m.kept:
	case container != nil:
		s.t.Errorf("the container is still there, %s", container.State.Status)
	case !errors.Is(err, sandbox.ErrNotFound):
		s.t.Errorf("the row is still there: %+v, %v", row, err)
	}
	neighbour.Release()
	if err := a.Discard(s.t.Context(), neighbour.Plan); err != nil {
		s.t.Errorf("discard: %v", err)
	}
	if m.kept {
		return
	}
	if left := append(processesIn(s.t, s.state), filesIn(s.t, filepath.Join(s.state, "wire"))[1:]...); len(left) != 0 {
		s.t.Errorf("left of it: %v", left)
	}
}

// footprint is everything that an installation has on its machine.
type footprint struct {
	Containers []string
	Processes  []string
	Mounts     []string
	Files      []string
	Rows       []string
}

// footprint looks for all of it. roots are directories on which containers of
// the installation had their root file system mounted.
func (s *site) footprint(roots []string) footprint {
	s.t.Helper()
	a := s.open()
	f := footprint{Mounts: mountsOf(s.t, append(roots, s.dir)), Processes: processesIn(s.t, s.state)}
	for _, c := range s.ours() {
		f.Containers = append(f.Containers, c.name())
	}
	for _, r := range s.rows(a) {
		f.Rows = append(f.Rows, r.ContainerName+" "+string(r.Phase))
	}
	a.Close()
	f.Files = filesIn(s.t, s.state)
	return f
}

// containerRoots are where the engine mounts the root of each container that
// the installation has now.
func (s *site) containerRoots() (roots []string) {
	s.t.Helper()
	for _, c := range s.ours() {
		if root := s.engine.inspect(c.ID).GraphDriver.Data["MergedDir"]; root != "" {
			roots = append(roots, root)
		}
	}
	return roots
}

func filesIn(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		files = append(files, strings.TrimPrefix(path, dir)+" "+e.Type().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func mountsOf(t *testing.T, dirs []string) (mounts []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if slices.ContainsFunc(dirs, func(dir string) bool { return strings.Contains(line, dir) }) {
			mounts = append(mounts, line)
		}
	}
	return mounts
}

// processesIn lists the processes that have something below dir mounted: the
// guests of an installation, and what runs beside them.
func processesIn(t *testing.T, dir string) (processes []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		mounts, err := os.ReadFile(filepath.Join("/proc", e.Name(), "mountinfo"))
		if err != nil || !strings.Contains(string(mounts), dir+"/") {
			continue // ended meanwhile, or none of ours
		}
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		processes = append(processes, e.Name()+" "+strings.ReplaceAll(string(command), "\x00", " "))
	}
	return processes
}
