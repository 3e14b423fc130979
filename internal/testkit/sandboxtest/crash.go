package sandboxtest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// victimVariable is the environment variable that says to a test binary, which the
// suite starts again, what to ensure and where to end itself with SIGKILL.
const victimVariable = "ATOLL_SANDBOXTEST_VICTIM"

// victim is a process that dies at one checkpoint of Ensure, or of MakePooled if the spec
// is for a pool.
type victim struct {
	State string
	Spec  *sandbox.Spec
	At    string
	Claim bool // it takes the sandbox out of a pool
}

func victimFromEnvironment() *victim {
	text := os.Getenv(victimVariable)
	if text == "" {
		return nil
	}
	v := new(victim)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		panic(err)
	}
	return v
}

func (v *victim) run(t *testing.T, s Subject) {
	o := ManagerOptions(t, v.State, s.Open(t, v.State))
	o.Checkpoint = func(step string) {
		if step == v.At {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	t.Fatalf("still alive: %q was not reached (%v)", v.At, v.act(t, sandbox.NewManager(o), s))
}

// act does what the victim dies of.
func (v *victim) act(t *testing.T, m *sandbox.Manager, s Subject) error {
	if v.Spec.Kind == sandbox.KindPool {
		return m.MakePooled(t.Context(), v.Spec)
	}
	if v.Claim {
		if _, err := take(m, &stage{Subject: s, t: t}, v.Spec); err != nil {
			return err
		}
	}
	_, err := m.Ensure(t.Context(), v.Spec)
	return err
}

// die runs a victim of the current test's runtime to its death.
func (s *stage) die(spec *sandbox.Spec, at string) {
	s.t.Helper()
	s.runVictim(&victim{State: s.state, Spec: spec, At: at})
}

// runVictim runs a victim to its death.
func (s *stage) runVictim(v *victim) {
	s.t.Helper()
	order, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	top, _, _ := strings.Cut(s.t.Name(), "/")
	cmd := exec.CommandContext(s.t.Context(), os.Args[0], "-test.run=^"+regexp.QuoteMeta(top)+"$")
	cmd.Env = append(os.Environ(), victimVariable+"="+string(order))
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		s.t.Fatalf("the victim did not die at %q: %v\n%s", v.At, err, out)
	}
}

// The checkpoints that a creation passes, and those of a recreation before it.
var (
	creationPoints   = []string{"before intent", "after intent", "after create", "after start", "after wire", "before setup", "after setup", "before ready", "after ready"}
	recreationPoints = []string{"before remove", "after remove"}
)

var crashCases = buildCrashCases()

func buildCrashCases() []testCase {
	var cases []testCase
	for _, at := range creationPoints {
		cases = append(cases,
			testCase{"killed " + at + ", then used", func(s *stage) { s.killedThenUsed(at) }},
			testCase{"killed " + at + ", then pruned", func(s *stage) { s.killedThenPruned(at) }})
	}
	for _, at := range recreationPoints {
		cases = append(cases, testCase{"killed " + at + ", then used", func(s *stage) { s.killedWhileRecreating(at) }})
	}
	return append(cases, testCase{"killed after starting it again, then used", func(s *stage) {
		spec := s.spec()
		s.ensure(s.manager(), spec).Release()
		inst, err := s.runtime.Open(s.t.Context(), spec.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := inst.Kill(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.die(spec, "started again")
		s.sh(s.ensure(s.manager(), spec).Machine, "true")
	}})
}

// withSetup has a set-up that shows whether it ran to its end exactly once.
func (s *stage) withSetup() *sandbox.Spec {
	spec := s.spec()
	spec.SetupCommand = "rm -f " + spec.Workdir + "/done; sleep 0.1; echo done >" + spec.Workdir + "/done"
	return spec
}

func (s *stage) killedThenUsed(at string) {
	spec := s.withSetup()
	s.die(spec, at)
	h := s.ensure(s.manager(), spec)
	if got := s.sh(h.Machine, "cat "+spec.Workdir+"/done"); got != "done" {
		s.t.Errorf("the set-up is not complete: %q", got)
	}
	if list, err := s.runtime.List(s.t.Context()); len(list) != 1 {
		s.t.Errorf("%d sandboxes, %v", len(list), err)
	}
}

func (s *stage) killedThenPruned(at string) {
	spec := s.withSetup()
	s.die(spec, at)
	m := s.manager()
	s.prune(m, limits(0, 0))
	list, err := s.runtime.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if at == "after ready" {
		if len(list) != 1 {
			s.t.Errorf("the finished sandbox was not kept: %v", list)
		}
		return
	}
	if len(list) != 0 {
		s.t.Errorf("left behind: %v", list)
	}
	s.wantNoRow(spec.Name)
}

func (s *stage) killedWhileRecreating(point string) {
	c := newClock()
	spec := s.spec()
	c.pass(-2 * sandbox.HotWindow)
	s.ensure(s.manager(at(c)), spec).Release()
	next := again(spec)
	s.die(next, point)
	h := s.ensure(s.manager(), next)
	if inst, err := s.runtime.Open(s.t.Context(), spec.Name); err != nil || inst.Seen().Labels[sandbox.LabelConfigHash] != next.ConfigHash {
		s.t.Errorf("not the new configuration: %v", err)
	}
	s.sh(h.Machine, "true")
}
