package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
)

func TestRefuse(t *testing.T) {
	cases := []struct {
		name   string
		change func(*sandbox.Spec)
		want   string // part of the message; "" is accepted
	}{
		{"usual", func(*sandbox.Spec) {}, ""},
		{"bridge", func(s *sandbox.Spec) { s.Network = "bridge" }, ""},
		{"joined network", func(s *sandbox.Spec) { s.Network = "container:web" }, ""},
		{"hard limit only", func(s *sandbox.Spec) { s.Limits.Ulimits = []sandbox.Ulimit{{Name: "core", Soft: 0, Hard: -1}} }, ""},

		{"name with a slash", func(s *sandbox.Spec) { s.Name = "a/b" }, "container name"},
		{"name with an option", func(s *sandbox.Spec) { s.Name = "-v" }, "container name"},
		{"long name", func(s *sandbox.Spec) { s.Name = strings.Repeat("n", 64) }, "container name"},
		{"no image", func(s *sandbox.Spec) { s.Image = "" }, "image"},
		{"host network", func(s *sandbox.Spec) { s.Network = "host" }, `network "host"`},
		{"host network in capitals", func(s *sandbox.Spec) { s.Network = "HOST" }, "network"},
		{"network namespace by path", func(s *sandbox.Spec) { s.Network = "ns:/proc/1/ns/net" }, "network"},
		{"no network named", func(s *sandbox.Spec) { s.Network = "" }, "network"},
		{"user-mode network", func(s *sandbox.Spec) { s.Network = "slirp4netns" }, "network"},
		{"joined network of nobody", func(s *sandbox.Spec) { s.Network = "container:" }, "network"},
		{"no seccomp", func(s *sandbox.Spec) { s.SeccompProfile = " Unconfined" }, "security profile"},
		{"no apparmor", func(s *sandbox.Spec) { s.AppArmorProfile = "unconfined" }, "security profile"},
		{"variable with =", func(s *sandbox.Spec) { s.Env = map[string]string{"A=B": ""} }, "environment"},
		{"value with NUL", func(s *sandbox.Spec) { s.Env = map[string]string{"A": "\x00"} }, "environment"},
		{"relative source", func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: "x", Target: "/x"}} }, "mount source"},
		{"target over the guest", func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: "/x", Target: "/.atoll/guest"}} }, "mount target"},
		{"target by a detour", func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: "/x", Target: "/tmp/../.atoll"}} }, "mount target"},
		{"tmpfs over everything", func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/"}} }, "mount target"},
		{"volume over the wire", func(s *sandbox.Spec) { s.Volumes = []sandbox.Volume{{Name: "v", Target: "/.atoll/wire"}} }, "mount target"},
		{"volume that is a path", func(s *sandbox.Spec) { s.Volumes = []sandbox.Volume{{Name: "/etc", Target: "/v"}} }, `volume "/etc"`},
		{"relative workdir", func(s *sandbox.Spec) { s.Workdir = "src" }, "workdir"},
		{"dns by name", func(s *sandbox.Spec) { s.DNS = []string{"dns.example"} }, "dns server"},
		{"extra host without address", func(s *sandbox.Spec) { s.ExtraHosts = []string{"db"} }, "extra host"},
		{"negative limit", func(s *sandbox.Spec) { s.Limits.Memory = -1 }, "limits"},
		{"soft over hard", func(s *sandbox.Spec) { s.Limits.Ulimits = []sandbox.Ulimit{{Name: "nofile", Soft: 2, Hard: 1}} }, "ulimit"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spec := plainSpec()
			c.change(spec)
			err := refuse(spec)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (!errors.Is(err, sandbox.ErrDenied) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want a refusal of %q", err, c.want)
			}
		})
	}
}

func TestRefuseTellsAllAtOnce(t *testing.T) {
	spec := plainSpec()
	spec.Network, spec.Name, spec.Workdir = "host", "", "x"
	if got := strings.Count(refuse(spec).Error(), "\n"); got != 2 {
		t.Errorf("%d lines, want one for each of the three problems: %v", got+1, refuse(spec))
	}
}
