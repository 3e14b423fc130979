package docker

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/system"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// capable is an engine that can enforce everything.
func capable() *facts {
	return &facts{where: Nearby, Info: system.Info{
		OSType: "linux", MemoryLimit: true, SwapLimit: true, CPUCfsPeriod: true, CPUCfsQuota: true, PidsLimit: true, NCPU: 4,
		SecurityOptions: []string{"name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"},
		Runtimes:        map[string]system.RuntimeWithStatus{"nvidia": {}},
		ServerVersion:   "5.0.1",
	}}
}

func demanding() *sandbox.Spec {
	spec := plainSpec()
	spec.AppArmorProfile, spec.GPUs = "mine", "all"
	spec.Limits = sandbox.Limits{Pids: 1, Memory: 1, MemorySwap: 1, CPUs: 1}
	return spec
}

func TestGaps(t *testing.T) {
	cases := []struct {
		name   string
		flavor Flavor
		spoil  func(*facts, *sandbox.Spec)
		want   []string // fields
	}{
		{"everything can be enforced", Docker, func(*facts, *sandbox.Spec) {}, nil},
		{"another machine", Docker, func(f *facts, _ *sandbox.Spec) { f.where = Remote }, []string{"backend"}},
		{"windows", Docker, func(f *facts, _ *sandbox.Spec) { f.OSType = "windows" }, []string{"backend"}},
		{"selinux", Docker, func(f *facts, _ *sandbox.Spec) { f.SecurityOptions = append(f.SecurityOptions, "name=selinux") }, []string{"backend"}},
		{"no seccomp, no apparmor", Docker, func(f *facts, _ *sandbox.Spec) { f.SecurityOptions = nil }, []string{"docker.seccompProfile", "docker.apparmorProfile"}},
		{"no limits", Docker, func(f *facts, _ *sandbox.Spec) {
			f.MemoryLimit, f.SwapLimit, f.CPUCfsQuota, f.PidsLimit = false, false, false, false
		}, []string{"docker.memory", "docker.memorySwap", "docker.cpus", "docker.pidsLimit"}},
		{"no limits, none asked", Docker, func(f *facts, s *sandbox.Spec) {
			f.MemoryLimit, f.SwapLimit, f.CPUCfsQuota, f.PidsLimit = false, false, false, false
			s.Limits = sandbox.Limits{}
		}, nil},
		{"unlimited swap needs no limit", Docker, func(f *facts, s *sandbox.Spec) { f.SwapLimit, s.Limits.MemorySwap = false, -1 }, nil},
		{"too many cpus", Docker, func(_ *facts, s *sandbox.Spec) { s.Limits.CPUs = 5 }, []string{"docker.cpus"}},
		{"no gpu runtime", Docker, func(f *facts, _ *sandbox.Spec) { f.Runtimes = nil }, []string{"docker.gpus"}},
		{"strange gpus", Docker, func(_ *facts, s *sandbox.Spec) { s.GPUs = "many" }, []string{"docker.gpus"}},
		{"old podman with gpus", Podman, func(f *facts, _ *sandbox.Spec) { f.ServerVersion = "4.3.1" }, []string{"docker.gpus"}},
		{"root in rootless podman", Podman, func(f *facts, s *sandbox.Spec) {
			f.SecurityOptions, s.User = append(f.SecurityOptions, "name=rootless"), "0:0"
		}, []string{"docker.user"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			known, spec := capable(), demanding()
			spec.User = fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid()) // whom every caller can reach
			c.spoil(known, spec)
			r := &Runtime{options: Options{Flavor: c.flavor}}
			gaps := slices.Concat(r.engineGaps(known), isolationGaps(known, spec), limitGaps(known, spec.Limits), r.gpuGaps(known, spec), r.userGaps(known, spec))
			var fields []string
			for _, gap := range gaps {
				fields = append(fields, gap.Field)
				if gap.Reason == "" || gap.Remedy == "" {
					t.Errorf("%+v says too little", gap)
				}
			}
			if diff := cmp.Diff(c.want, fields); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGapsOfARealEngine(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		cases := []struct {
			name   string
			change func(*sandbox.Spec)
			want   []string
		}{
			{"usual", func(s *sandbox.Spec) {
				s.Limits = sandbox.Limits{Pids: 9, Memory: 1 << 30, MemorySwap: 1 << 30, CPUs: 1}
			}, nil},
			{"bridge", func(s *sandbox.Spec) { s.Network = "bridge" }, nil},
			{"missing network", func(s *sandbox.Spec) { s.Network = "atoll-test-no-such" }, []string{"docker.network"}},
			{"missing container", func(s *sandbox.Spec) { s.Network = "container:atoll-test-no-such" }, []string{"docker.network"}},
			{"names in a joined network", func(s *sandbox.Spec) { s.Network, s.DNS = "container:atoll-test-no-such", []string{"1.1.1.1"} },
				[]string{"docker.network", "docker.dns"}},
			{"gpus", func(s *sandbox.Spec) { s.GPUs = "all" }, []string{"docker.gpus"}},
			{"apparmor", func(s *sandbox.Spec) { s.AppArmorProfile = "mine" }, []string{"docker.apparmorProfile"}},
		}
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				var fields []string
				for _, gap := range l.Check(t.Context(), l.spec(c.change)) {
					fields = append(fields, gap.Field)
				}
				if diff := cmp.Diff(c.want, fields); diff != "" {
					t.Errorf("gaps (-want +got):\n%s", diff)
				}
			})
		}
	})
}

func TestRemotePlaceIsAGap(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker, func(o *Options) { o.Location = Remote })
	gaps := l.Check(t.Context(), l.spec())
	if len(gaps) != 1 || gaps[0].Field != "backend" {
		t.Errorf("gaps: %+v", gaps)
	}
}

func TestWhereabouts(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker)
	known, err := l.askFacts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if known.where != Nearby {
		t.Errorf("the test engine is taken for %q", known.where)
	}
	for name, spoil := range map[string]func(*facts) string{
		"over the network": func(*facts) string { return "tcp://127.0.0.1:2375" },
		"another kernel":   func(f *facts) string { f.KernelVersion = "1.0"; return l.options.Host },
		"another host":     func(f *facts) string { f.Name = "elsewhere"; return l.options.Host },
	} {
		f := *known
		if got := f.location(spoil(&f)); got != Remote {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestPodmanIsBelievedWhatItSaysOfItself(t *testing.T) {
	rich, poor := new(podmanInfo), new(podmanInfo)
	rich.Host.CgroupControllers = []string{"cpu", "memory", "pids"}
	rich.Host.Security.Seccomp = true
	poor.Host.Security.Rootless, poor.Host.Security.Seccomp = true, true
	for name, c := range map[string]struct {
		own      *podmanInfo
		limits   bool
		rootless bool
	}{"with root": {rich, true, false}, "without, no controllers given": {poor, false, true}} {
		f := capable()
		f.applyPodmanInfo(c.own)
		got := []bool{f.MemoryLimit, f.SwapLimit, f.PidsLimit, f.CPUCfsQuota}
		if slices.Contains(got, !c.limits) || f.secured("rootless") != c.rootless || !f.secured("seccomp") || f.secured("apparmor") {
			t.Errorf("%s: limits %v, %v", name, got, f.SecurityOptions)
		}
	}
}
