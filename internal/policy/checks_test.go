package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

// oneField checks single values of one field; no text means accepted.
func oneField(t *testing.T, set func(*config.Docker, string), cases map[string]string) {
	t.Helper()
	for value, want := range cases {
		docker := plain()
		set(&docker, value)
		if want == "" {
			check(t, docker, policy.Host{})
			continue
		}
		check(t, docker, policy.Host{}, want)
	}
}

func TestValidateNetwork(t *testing.T) {
	set := func(d *config.Docker, v string) { d.Network = v }
	t.Run("V30", func(t *testing.T) {
		oneField(t, set, map[string]string{
			"host": "is blocked", "HOST": "is blocked", "container:abc": "is blocked", "CONTAINER:ABC": "is blocked",
			"bridge": "", "none": "", "my-net": "", "": "",
		})
	})
	oneField(t, set, map[string]string{
		" Host\t": "is blocked", " container:abc": "is blocked", "ns:/proc/1/ns/net": "not the name", "a b": "not the name", "-x": "not the name",
	})
	joined := plain()
	joined.AllowNamespaceJoin = true
	joined.Network = "container:abc"
	check(t, joined, policy.Host{})
	joined.Network = "container:"
	check(t, joined, policy.Host{}, "names no container")
	joined.Network = "host"
	check(t, joined, policy.Host{}, "is blocked")
}

func TestValidateProfiles(t *testing.T) {
	t.Run("V31", func(t *testing.T) {
		for _, set := range []func(*config.Docker, string){
			func(d *config.Docker, v string) { d.SeccompProfile = v },
			func(d *config.Docker, v string) { d.AppArmorProfile = v },
		} {
			oneField(t, set, map[string]string{
				"unconfined": "is blocked", "Unconfined": "is blocked", " UNCONFINED ": "is blocked",
				"/tmp/seccomp.json": "", "openclaw-sandbox": "", "": "", "a\nb": "control character",
			})
		}
	})
}

func TestValidateTmpfs(t *testing.T) {
	oneField(t, func(d *config.Docker, v string) { d.Tmpfs = []string{v}; d.Binds = []string{"/srv/c:/cache"} }, map[string]string{
		"/tmp": "", "/tmp:size=64m,mode=1777,noexec": "", "/home/x": "", "/workspace/tmp": "",
		"tmp": "not an absolute path", "": "not an absolute path", "/": "hide the system", "/a/..": "hide the system", "/proc/x": "hide the system",
		"/.atoll": "reserved for Atoll", "/.atoll/wire": "reserved for Atoll", "/workspace": "hide the workspace", "/workspace/": "hide the workspace",
		"/agent": "hide the workspace", "/cache/": "target of a bind",
		"/tmp:suid": `option "suid"`, "/tmp:size=": `option "size="`, "/tmp:dev,size=1m": `option "dev"`, "/tmp:size=1m:x": `option`, "/t\x01": "not an absolute",
	})
}

func TestValidateWorkdir(t *testing.T) {
	oneField(t, func(d *config.Docker, v string) { d.Workdir = v }, map[string]string{
		"/workspace": "", "/home/agent": "", "/workspace/": "",
		"": "not an absolute path", "work": "not an absolute path", "/": "hide the system", "/x/..": "hide the system", "/usr": "hide the system",
		"/proc/1": "hide the system", "/.atoll": "reserved", "/agent/x": "reserved", "/a:b": "not an absolute path", "/a\n": "not an absolute path",
	})
}

func TestValidateUser(t *testing.T) {
	oneField(t, func(d *config.Docker, v string) { d.User = v }, map[string]string{
		"": "", "sandbox": "", "1000": "", "1000:1000": "", "0:0": "", "root": "", "node:staff": "", "4294967294": "",
		"-1": "not a user", "1000:": "not a user", ":5": "not a user", "a b": "not a user", "4294967295": "not a user", "1:2:3": "not a user",
		"99999999999999999999": "not a user", "$(id)": "not a user",
	})
}

func TestValidateNames(t *testing.T) {
	oneField(t, func(d *config.Docker, v string) { d.DNS = []string{v} }, map[string]string{
		"1.1.1.1": "", "2606:4700::1111": "", "one.one": "not an IP", "": "not an IP", "fe80::1%eth0": "not an IP", "1.1.1.1:53": "not an IP",
	})
	oneField(t, func(d *config.Docker, v string) { d.ExtraHosts = []string{v} }, map[string]string{
		"host.docker.internal:host-gateway": "", "db:10.0.0.5": "", "db:2001:db8::1": "", "db:[2001:db8::1]": "",
		"db": "not a name and an address", "db:": "not a name", ":1.1.1.1": "not a name", "a b:1.1.1.1": "not a name", "db:other": "not a name",
	})
	oneField(t, func(d *config.Docker, v string) { d.CapDrop = []string{v} }, map[string]string{
		"ALL": "", "all": "", "NET_RAW": "", "cap_net_raw": "", "FLY": "does not exist", "": "does not exist",
	})
	oneField(t, func(d *config.Docker, v string) { d.ContainerPrefix = v }, map[string]string{
		"": "", "x": "", "a.b_c-": "", "-a": "makes names", "a b": "makes names", "ä": "makes names",
	})
}

func TestUlimits(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for _, tc := range []struct {
		name, limit string
		value       config.Ulimit
		flag        string // or the error
	}{
		{"V17 both", "nofile", config.Ulimit{Soft: number(1024), Hard: number(2048)}, "nofile=1024:2048"},
		{"V17 number", "nproc", config.Ulimit{Text: "128", Number: true}, "nproc=128"},
		{"V17 string", "core", config.Ulimit{Text: "0"}, "core=0"},
		{"written pair", "nofile", config.Ulimit{Text: "10:20"}, "nofile=10:20"},
		{"unlimited", "core", config.Ulimit{Text: "-1"}, "core=-1"},
		{"soft only", "core", config.Ulimit{Soft: number(5)}, "core=5"},
		{"hard only", "core", config.Ulimit{Hard: number(6)}, "core=6"},
		{"soft above hard", "nofile", config.Ulimit{Soft: number(3), Hard: number(2)}, "above the hard limit"},
		{"soft without end", "nofile", config.Ulimit{Text: "-1:2"}, "above the hard limit"},
		{"no number", "nofile", config.Ulimit{Text: "many"}, "expected a limit"},
		{"nothing", "nofile", config.Ulimit{}, "expected a limit"},
		{"negative", "nofile", config.Ulimit{Text: "-2"}, "expected a limit"},
		{"unknown name", "files", config.Ulimit{Text: "1"}, "does not exist"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			docker := plain()
			docker.Ulimits = map[string]config.Ulimit{tc.limit: tc.value}
			if !strings.Contains(tc.flag, "=") {
				check(t, docker, policy.Host{}, tc.flag)
				return
			}
			check(t, docker, policy.Host{})
			if got, err := ulimitFlag(tc.limit, tc.value); err != nil || got != tc.flag {
				t.Errorf("got %q, %v, want %q", got, err, tc.flag)
			}
		})
	}
}

// ulimitFlag is a ulimit in the form of the docker command line.
func ulimitFlag(name string, u config.Ulimit) (string, error) {
	soft, hard, err := u.Values()
	if err == nil && soft == hard {
		return fmt.Sprintf("%s=%d", name, soft), nil
	}
	return fmt.Sprintf("%s=%d:%d", name, soft, hard), err
}
