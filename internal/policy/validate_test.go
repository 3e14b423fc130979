package policy_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/policy"
)

// plain is a configuration with nothing to object to.
func plain() config.Docker {
	return config.Docker{
		Image: "i", ContainerPrefix: "openclaw-sbx-", Workdir: "/workspace", ReadOnlyRoot: true, Network: "none",
		Tmpfs: []string{"/tmp", "/var/tmp", "/run"}, CapDrop: []string{"ALL"},
	}
}

// check validates and compares with what each finding must say; no text means
// that nothing may be found.
func check(t *testing.T, docker config.Docker, host policy.Host, want ...string) {
	t.Helper()
	found := policy.Validate(docker, host)
	if len(found) != len(want) {
		t.Fatalf("found %d, want %d: %+v", len(found), len(want), found)
	}
	for i, f := range found {
		if !strings.Contains(f.Message, want[i]) {
			t.Errorf("%q does not say %q", f.Message, want[i])
		}
		if !strings.HasPrefix(f.Message, "Sandbox security: ") || f.Hint == "" || !strings.HasPrefix(f.Field, "sandbox.docker.") {
			t.Errorf("incomplete finding %+v", f)
		}
	}
}

func TestValidateBinds(t *testing.T) {
	user := policy.Host{Homes: []string{"/home/user"}}
	rooted := policy.Host{Homes: []string{"/home/user"}, Roots: []string{"/home/user/project/"}}
	external := func(d *config.Docker) { d.AllowExternalSources = true }
	reserved := func(d *config.Docker) { d.AllowReservedTargets = true }
	all := func(d *config.Docker) {
		d.AllowExternalSources, d.AllowReservedTargets, d.AllowNamespaceJoin = true, true, true
	}
	for _, tc := range []struct {
		name, bind string
		host       policy.Host
		override   func(*config.Docker)
		want       string // "" if the bind is accepted
	}{
		{"V21", "/:/mnt/host", user, nil, `covers blocked path "/"`},
		{"V22 file", "/etc/passwd:/mnt/passwd:ro", user, nil, `targets blocked path "/etc"`},
		{"V22 slashes", "//etc//passwd:/mnt/p", user, nil, `targets blocked path "/etc"`},
		{"V22 dots", "/home/user/../../etc/shadow:/mnt/s", user, nil, `targets blocked path "/etc"`},
		{"V23 socket", "/var/run/docker.sock:/var/run/docker.sock", user, all, `gives access to the socket "/var/run/docker.sock"`},
		{"V23 run", "/run:/mnt/run", user, all, `targets blocked path "/run"`},
		{"V23 var run", "/var/run:/mnt/run:ro", user, all, `targets blocked path "/var/run"`},
		{"V23 proc", "/proc:/mnt/proc:ro", user, all, `targets blocked path "/proc"`},
		{"V24", "/var:/var", user, all, `covers blocked path "/var/run"`},
		{"V25 home", "/home/user/source:/source:rw", user, nil, ""},
		{"V25 var", "/var/data/myapp:/data", user, nil, ""},
		{"V25 opt", "/opt/myapp/config:/config:ro", user, nil, ""},
		{"V26 parent", "../etc/passwd:/m", user, nil, "is not an absolute path"},
		{"V26 relative", "etc/passwd:/m", user, nil, "is not an absolute path"},
		{"V26 volume", "myvol:/mnt", user, all, "is not an absolute path"},
		{"V27", "/opt/external:/data:ro", rooted, nil, "outside of the allowed roots"},
		{"V27 override", "/opt/external:/data:ro", rooted, external, ""},
		{"V27 similar name", "/home/user/project-evil:/data", rooted, nil, "outside of the allowed roots"},
		{"V27 inside", "/home/user/project/sub:/data", rooted, nil, ""},
		{"V28 workspace", "/home/user/project:/workspace:rw", rooted, nil, "is reserved (/workspace)"},
		{"V28 agent", "/home/user/project:/agent/cache:rw", rooted, nil, "is reserved (/agent)"},
		{"V28 override", "/home/user/project:/workspace:rw", rooted, reserved, ""},
		{"V28 override agent", "/home/user/project:/agent/cache:rw", rooted, reserved, ""},

		{"home covers credentials", "/home/user:/h", user, all, `covers blocked path "/home/user/.aws"`},
		{"all homes", "/home:/h", user, all, `covers blocked path "/home/user/.aws"`},
		{"ssh keys", "/home/user/.ssh/id_rsa:/k:ro", user, all, `targets blocked path "/home/user/.ssh"`},
		{"netrc", "/home/user/.netrc:/n", user, all, `targets blocked path "/home/user/.netrc"`},
		{"another user's home is no home of ours", "/home/other/.ssh:/k", user, nil, ""},
		{"root's home", "/root/x:/x", user, all, `targets blocked path "/root"`},
		{"similar to a blocked name", "/etcetera:/x", user, nil, ""},
		{"podman socket anywhere", "/srv/podman.sock:/p", user, all, "gives access to the socket"},
		{"containerd socket", "/srv/containerd.sock:/p", user, all, "gives access to the socket"},
		{"crio socket", "/srv/CRIO.sock:/p", user, all, "gives access to the socket"},
		{"Atoll's files", "/srv/x:/.atoll/guest", user, all, "reserved for Atoll"},
		{"Atoll's files by dots", "/srv/x:/a/../.atoll", user, all, "reserved for Atoll"},
		{"reserved by dots", "/srv/x:/a/../workspace/b", user, nil, "is reserved (/workspace)"},
		{"target is the root", "/srv/x:/", user, all, "belongs to the system"},
		{"target in proc", "/srv/x:/proc/self", user, all, "belongs to the system"},
		{"relative target", "/srv/x:data", user, all, "target \"data\" is not an absolute path"},
		{"empty target", "/srv/x:", user, all, "target \"\" is not an absolute path"},
		{"no target", "/srv/x", user, all, "has no target"},
		{"blank", " ", user, all, "has no target"},
		{"control character", "/srv/\x1bx:/x", user, all, "control character"},
		{"newline in target", "/srv/x:/x\n", user, all, "control character"},
		{"drive", `C:\Users:/x`, user, all, "is not an absolute path"},
		{"labels", "/srv/x:/x:ro,Z", user, nil, ""},
		{"propagation", "/srv/x:/x:rshared", user, all, `option "rshared" is not accepted`},
		{"more colons", "/srv/x:/x:ro:/etc", user, all, `option "ro:/etc" is not accepted`},
		{"empty option", "/srv/x:/x:ro,", user, all, `option "" is not accepted`},
		{"contradiction", "/srv/x:/x:ro,rw", user, all, "contradict"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			docker := plain()
			docker.Binds = []string{tc.bind}
			if tc.override != nil {
				tc.override(&docker)
			}
			if tc.want == "" {
				check(t, docker, tc.host)
				return
			}
			check(t, docker, tc.host, tc.want)
		})
	}
}

func TestCustomWorkdirIsReserved(t *testing.T) {
	docker := plain()
	docker.Workdir = "/srv/work/"
	docker.Binds = []string{"/opt/x:/srv/work/x", "/opt/x:/srv/other", "/opt/x:/workspace"}
	check(t, docker, policy.Host{}, "is reserved (/srv/work)", "is reserved (/workspace)")
}

func TestPrivatePathsOfAtoll(t *testing.T) {
	docker := plain()
	docker.AllowExternalSources = true
	docker.Binds = []string{"/srv/state:/s", "/srv/state/atoll.db:/db", "/srv/state/workspace:/w"}
	check(t, docker, policy.Host{Private: []string{"/srv/state/atoll.db"}}, "covers blocked path", "targets blocked path")
}

// TestValidateBindsOnDisk looks at what paths really are.
func TestValidateBindsOnDisk(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	varRun, err := filepath.EvalSymlinks("/var/run")
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.MkdirAll(in("ws/sub"), 0o755), os.Mkdir(in("outside"), 0o755), os.MkdirAll(in("home/.ssh"), 0o755),
		os.Mkdir(in("engine"), 0o755),
		os.Symlink("/var/run", in("ws/run")), os.Symlink("/etc/not/there", in("ws/dangling")),
		os.Symlink("../outside", in("ws/out")), os.Symlink("sub", in("ws/in")),
		os.Symlink("ws", in("alias")), os.Symlink("/proc/self/root/etc", in("ws/magic")), os.Symlink("../home", in("ws/home")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	listen(t, in("engine/docker.sock"))
	listen(t, in("ws/renamed"))

	host := policy.Host{Disk: hostpath.Disk{}, Homes: []string{in("home")}, Roots: []string{in("alias")}}
	for _, tc := range []struct{ name, source, want string }{
		{"V29", in("ws/run/not-created"), `source "` + varRun + `/not-created" targets blocked path "` + varRun + `"`},
		{"dangling link", in("ws/dangling"), `source "/etc/not/there" targets blocked path "/etc"`},
		{"link out of the roots", in("ws/out"), "outside of the allowed roots"},
		{"missing below a link out", in("ws/out/new"), "outside of the allowed roots"},
		{"link that stays inside", in("ws/in"), ""},
		{"root by its alias", in("alias/sub"), ""},
		{"root by its real name", in("ws/sub"), ""},
		{"link to a home", in("ws/home"), "covers blocked path"},
		{"link of proc", in("ws/magic"), hostpath.ErrMagicLink.Error()},
		{"socket under any name", in("ws/renamed"), "gives access to the socket"},
		{"directory that holds an engine's socket", in("engine"), `gives access to the socket "` + in("engine/docker.sock")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			docker := plain()
			docker.Binds = []string{tc.source + ":/mnt/x:ro"}
			if tc.want == "" {
				check(t, docker, host)
				return
			}
			check(t, docker, host, tc.want)
		})
	}
}

func listen(t *testing.T, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
}

// twoNames is a disk on which /alias is the root directory once more, mounted
// without any link, and /mirror is /etc.
type twoNames struct{}

func (twoNames) Canonical(path string) (string, error) { return path, nil }
func (twoNames) Socket(string) bool                    { return false }
func (twoNames) SocketsBelow(string) ([]string, bool)  { return nil, true }
func (twoNames) NamedSocketsBelow(string) []string     { return nil }
func (twoNames) Identity(path string) (device, inode uint64, exists bool) {
	path = "/" + strings.TrimPrefix(strings.TrimPrefix(path, "/alias"), "/")
	path = strings.Replace(path, "/mirror", "/etc", 1)
	known := map[string]uint64{"/": 1, "/etc": 2, "/home": 3, "/home/user": 4, "/home/user/.ssh": 5, "/home/user/src": 6}
	inode, exists = known[path]
	return 1, inode, exists
}

func TestASecondMountIsNoWayAround(t *testing.T) {
	host := policy.Host{Disk: twoNames{}, Homes: []string{"/home/user"}}
	for source, want := range map[string]string{
		"/alias":                `covers blocked path "/"`,
		"/alias/etc":            `targets blocked path "/etc"`,
		"/mirror/ssl":           `targets blocked path "/etc"`,
		"/alias/home":           `covers blocked path "/home/user/`,
		"/alias/home/user/.ssh": `targets blocked path "/home/user/.ssh"`,
		"/alias/home/user/src":  "",
	} {
		docker := plain()
		docker.Binds = []string{source + ":/x"}
		if want == "" {
			check(t, docker, host)
			continue
		}
		check(t, docker, host, "is another name of what "+want)
	}
}

func TestValidateWorkspace(t *testing.T) {
	host := policy.Host{Homes: []string{"/root", "/home/user"}}
	for dir, want := range map[string]string{
		"/root/.atoll/workspace": "", "/home/user/ws": "", "/srv/ws": "",
		"/": "covers", "/root": "covers", "/home/user/": "covers", "/etc/ws": "targets", "/home/user/.ssh": "targets", "ws": "not an absolute path",
	} {
		found := policy.ValidateWorkspace(dir, host)
		if (want == "") != (len(found) == 0) || want != "" && !strings.Contains(found[0].Message, want) {
			t.Errorf("%s: %+v, want %q", dir, found, want)
		}
	}
}

func TestAllFindingsAtOnce(t *testing.T) {
	docker := plain()
	docker.Workdir, docker.Network, docker.SeccompProfile, docker.User = "work", "host", "unconfined", "a b"
	docker.Binds = []string{"/etc:/workspace:bad", "/srv:/ok"}
	docker.DNS, docker.CapDrop = []string{"one.one"}, []string{"ALL", "FLY"}
	check(t, docker, policy.Host{},
		"workdir", "source", "target", "option", "network mode", "seccompProfile", "user", "dns server", "capability")
}
