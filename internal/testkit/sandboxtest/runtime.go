package sandboxtest

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var runtimeCases = []testCase{
	{"a command runs and its result comes back", func(s *stage) {
		m := s.wire(s.started(s.spec()))
		var out, errs bytes.Buffer
		res, err := m.Exec(s.t.Context(), &machine.Command{
			Argv:   []string{"/bin/sh", "-c", `read line; echo "got $line in $PWD, $FOO"; echo bad >&2; exit 7`},
			Env:    []string{"FOO=bar"},
			Dir:    "/",
			Stdin:  strings.NewReader("hello\n"),
			Stdout: &out, Stderr: &errs,
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if out.String() != "got hello in /, bar\n" || errs.String() != "bad\n" || res.ExitCode != 7 {
			s.t.Errorf("stdout %q, stderr %q, exit code %d", out.String(), errs.String(), res.ExitCode)
		}
	}},
	{"the workspace is the host's directory", func(s *stage) {
		spec := s.spec()
		if err := os.WriteFile(s.workspace(spec, "in.txt"), []byte("from the host"), 0o666); err != nil {
			s.t.Fatal(err)
		}
		inst := s.started(spec)
		if got := s.sh(s.wire(inst), "cd "+spec.Workdir+" && cat in.txt && echo from inside >out.txt"); got != "from the host" {
			s.t.Errorf("inside reads %q", got)
		}
		if s.Copies {
			s.check(inst.Stop(s.t.Context(), 2*time.Second))
		}
		if got, err := os.ReadFile(s.workspace(spec, "out.txt")); string(got) != "from inside\n" {
			s.t.Errorf("the host reads %q, %v", got, err)
		}
	}},
	{"a read-only mount stays read-only", func(s *stage) {
		if !s.Walls {
			return
		}
		spec := s.spec(func(spec *sandbox.Spec) { spec.Mounts[0].ReadOnly = true })
		if s.Copies {
			s.wantRefused(spec, "sandbox.workspaceAccess")
			return
		}
		m := s.wire(s.started(spec))
		if out, res := s.try(m, "echo x >"+spec.Workdir+"/x"); res.ExitCode == 0 {
			s.t.Errorf("a write to a read-only workspace succeeded: %s", out)
		}
		if _, err := os.Stat(s.workspace(spec, "x")); err == nil {
			s.t.Error("the file is on the host")
		}
	}},
	{"a name is taken once", func(s *stage) {
		spec := s.spec()
		inst := s.started(spec)
		if _, err := s.runtime.Create(s.t.Context(), spec); !errors.Is(err, sandbox.ErrExists) {
			s.t.Errorf("second create: %v, want ErrExists", err)
		}
		s.sh(s.wire(inst), "true") // and the first is unharmed
	}},
	{"what does not exist is not found", func(s *stage) {
		if _, err := s.runtime.Open(s.t.Context(), "atoll-suite-nobody"); !errors.Is(err, sandbox.ErrNotFound) {
			s.t.Errorf("got %v, want ErrNotFound", err)
		}
	}},
	{"the next process finds it again", func(s *stage) {
		spec := s.spec()
		first := s.started(spec)
		later, err := s.Open(s.t, s.state).Open(s.t.Context(), spec.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		seen := later.Seen()
		if seen.State != sandbox.StateRunning || seen.ID != first.Seen().ID || seen.Name != spec.Name {
			s.t.Errorf("seen %+v", seen)
		}
		for label, want := range map[string]string{
			sandbox.LabelSandbox: "1", sandbox.LabelSessionKey: spec.ScopeKey, sandbox.LabelAgent: spec.AgentID,
			sandbox.LabelConfigHash: spec.ConfigHash, sandbox.LabelMountsHash: spec.MountsHash,
		} {
			if seen.Labels[label] != want {
				s.t.Errorf("label %s is %q, want %q", label, seen.Labels[label], want)
			}
		}
		s.sh(s.wire(later), "true")
	}},
	{"it lives through stop and start", func(s *stage) {
		spec := s.spec()
		inst := s.started(spec)
		s.sh(s.wire(inst), "echo kept >"+spec.Workdir+"/kept")
		if err := inst.Stop(s.t.Context(), 2*time.Second); err != nil {
			s.t.Fatal(err)
		}
		if state, err := inst.State(s.t.Context()); state != sandbox.StateStopped || err != nil {
			s.t.Errorf("after stop: %q, %v", state, err)
		}
		if _, err := inst.Dial(s.t.Context()); !errors.Is(err, sandbox.ErrNotRunning) {
			s.t.Errorf("dial while stopped: %v, want ErrNotRunning", err)
		}
		if err := inst.Start(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		if got := s.sh(s.wire(inst), "cat "+spec.Workdir+"/kept"); got != "kept" {
			s.t.Errorf("after start: %q", got)
		}
	}},
	{"start, stop, kill and remove may be said twice", func(s *stage) {
		inst := s.started(s.spec())
		ctx := s.t.Context()
		if err := inst.Start(ctx); err != nil {
			s.t.Errorf("start again: %v", err)
		}
		for range 2 {
			if err := inst.Kill(ctx); err != nil {
				s.t.Errorf("kill: %v", err)
			}
		}
		if err := inst.Stop(ctx, time.Second); err != nil {
			s.t.Errorf("stop when stopped: %v", err)
		}
		for range 2 {
			if err := inst.Remove(ctx); err != nil {
				s.t.Errorf("remove: %v", err)
			}
		}
		if _, err := inst.State(ctx); !errors.Is(err, sandbox.ErrNotFound) {
			s.t.Errorf("state when removed: %v, want ErrNotFound", err)
		}
	}},
	{"removing a running one ends its processes", func(s *stage) {
		spec := s.spec()
		inst := s.started(spec)
		m := s.wire(inst)
		beat := "(while :; do date +%s%N >" + spec.Workdir + "/beat; sleep 0.05; done) >/dev/null 2>&1 </dev/null &"
		s.sh(m, beat)
		if err := inst.Remove(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		before, _ := os.ReadFile(s.workspace(spec, "beat"))
		time.Sleep(300 * time.Millisecond)
		if after, _ := os.ReadFile(s.workspace(spec, "beat")); !bytes.Equal(before, after) {
			s.t.Error("a process of the removed sandbox is still writing")
		}
		s.wantGone(spec.Name)
	}},
	{"the list has exactly ours", func(s *stage) {
		a, b := s.spec(), s.spec()
		s.started(a)
		if _, err := s.runtime.Create(s.t.Context(), b); err != nil {
			s.t.Fatal(err)
		}
		elsewhere := newStage(s.t, s.Subject)
		elsewhere.started(elsewhere.spec())
		list, err := s.runtime.List(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		states := map[string]sandbox.State{}
		for _, l := range list {
			states[l.Name] = l.State
		}
		if len(states) != 2 || states[a.Name] != sandbox.StateRunning || states[b.Name] != sandbox.StateCreated {
			s.t.Errorf("listed %v", states)
		}
	}},
	{"another installation's sandbox is foreign", func(s *stage) {
		elsewhere := newStage(s.t, s.Subject)
		spec := elsewhere.spec()
		theirs := elsewhere.started(spec)
		if _, err := s.runtime.Open(s.t.Context(), spec.Name); !errors.Is(err, sandbox.ErrForeign) && !errors.Is(err, sandbox.ErrNotFound) {
			s.t.Errorf("open: %v, want ErrForeign, or ErrNotFound where names are not shared", err)
		}
		elsewhere.sh(elsewhere.wire(theirs), "true")
	}},
	{"a missing image is named and leaves nothing", func(s *stage) {
		spec := s.spec(func(spec *sandbox.Spec) { spec.Image = "atoll-suite-no-such-image:1" })
		_, err := s.runtime.Create(s.t.Context(), spec)
		if !errors.Is(err, sandbox.ErrNoImage) || !strings.Contains(err.Error(), spec.Image) {
			s.t.Errorf("got %v, want ErrNoImage and the name", err)
		}
		s.wantGone(spec.Name)
	}},
	{"eight at once", func(s *stage) {
		var wg sync.WaitGroup
		for range 8 {
			spec := s.spec()
			wg.Go(func() {
				inst, err := s.runtime.Create(s.t.Context(), spec)
				if err == nil {
					err = inst.Start(s.t.Context())
				}
				if err != nil {
					s.t.Error(err)
				}
			})
		}
		wg.Wait()
		if list, err := s.runtime.List(s.t.Context()); len(list) != 8 {
			s.t.Errorf("%d listed, %v", len(list), err)
		}
	}},
	{"there is no network unless asked for", func(s *stage) {
		if !s.Walls {
			return
		}
		m := s.wire(s.started(s.spec()))
		if got := s.sh(m, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"); got != "lo" {
			s.t.Errorf("interfaces %q, want only lo", got)
		}
	}},
	{"the root is read-only and privileges are none", func(s *stage) {
		if !s.Walls {
			return
		}
		m := s.wire(s.started(s.spec()))
		if out, res := s.try(m, "echo x >/etc/x"); res.ExitCode == 0 {
			s.t.Errorf("wrote to /etc: %s", out)
		}
		status := s.sh(m, "grep -E 'CapEff|CapBnd|CapPrm|NoNewPrivs|Seccomp:' /proc/self/status | tr -s '\\t' ' '")
		for _, want := range []string{"CapEff: 0000000000000000", "CapPrm: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2"} {
			if !strings.Contains(status, want) {
				s.t.Errorf("%q is missing in\n%s", want, status)
			}
		}
	}},
	{"limits are in force", func(s *stage) {
		if !s.Walls {
			return
		}
		spec := s.spec(func(spec *sandbox.Spec) {
			spec.Limits = sandbox.Limits{Pids: 64, Memory: 64 << 20, MemorySwap: 64 << 20, Ulimits: []sandbox.Ulimit{{Name: "nofile", Soft: 100, Hard: 200}}}
		})
		if s.Unlimited {
			s.wantRefused(spec, "docker.pidsLimit", "docker.memory")
			return
		}
		if s.Refused != nil {
			s.wantRefused(spec, s.Refused...)
			return
		}
		m := s.wire(s.started(spec))
		if got := s.sh(m, "ulimit -Sn; ulimit -Hn"); got != "100\n200" {
			s.t.Errorf("nofile %q", got)
		}
		if _, res := s.try(m, `i=0; while [ $i -lt 300 ]; do sleep 5 & i=$((i+1)); done`); res.ExitCode == 0 {
			s.t.Error("300 processes were started under a limit of 64")
		}
		s.sh(m, "true") // the guest lives on
	}},
}
