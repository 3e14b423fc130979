package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// cgroupFile reads a limit as processes inside see it, in the words of cgroup
// v1 or v2.
func cgroupFile(t *testing.T, i sandbox.Instance, v1, v2 string) string {
	t.Helper()
	return sh(t, i, fmt.Sprintf("cat /sys/fs/cgroup/%s 2>/dev/null || cat /sys/fs/cgroup/%s", v1, v2))
}

func TestInsideIsAsAsked(t *testing.T) {
	cases := []struct {
		name   string
		change func(*sandbox.Spec)
		look   func(*testing.T, *Instance) string
		want   string
	}{
		{"user", nil, shell("id -u; id -g"), "1234\n1234"},
		{"root", func(s *sandbox.Spec) { s.User = "0:0" }, shell("id -u; id -g"), "0\n0"},
		{"no capability, even for root", func(s *sandbox.Spec) { s.User = "0:0" },
			shell("grep -E 'Cap(Prm|Eff|Bnd|Amb)' /proc/self/status | tr -d '\\t' | sort -u"),
			"CapAmb:0000000000000000\nCapBnd:0000000000000000\nCapEff:0000000000000000\nCapPrm:0000000000000000"},
		{"no new privileges, filtered calls", nil, shell("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'"), "NoNewPrivs:1\nSeccomp:2"},
		{"guest is process 1", nil, shell("tr '\\0' ' ' < /proc/1/cmdline"), "/.atoll/guest init --socket /.atoll/wire/guest.sock"},
		{"read-only root", nil, shell("touch /x 2>&1 || true"), "touch: /x: Read-only file system"},
		{"writable root", func(s *sandbox.Spec) { s.ReadOnlyRoot, s.User = false, "0:0" }, shell("touch /bin/x && echo made"), "made"},
		{"only what was asked is writable", func(s *sandbox.Spec) { s.Tmpfs = nil },
			shell("for d in / /run /tmp /var /var/tmp /home /etc /sys /proc /dev; do touch $d/x 2>/dev/null && echo $d; done; true"), ""},
		{"tmpfs size", func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Options: "size=3m"}} },
			shell("dd if=/dev/zero of=/tmp/x bs=1M count=9 2>/dev/null; wc -c < /tmp/x"), strconv.Itoa(3 << 20)},
		{"tmpfs is open to everyone, and runs nothing", func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/cache"}} },
			shell("stat -c %a /cache; cp /bin/busybox /cache/b && /cache/b true 2>&1 || true"), "1777\n/bin/sh: /cache/b: Permission denied"},
		{"tmpfs with exec", func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/cache", Options: "exec"}} },
			shell("cp /bin/busybox /cache/busybox && /cache/busybox echo runs"), "runs"},
		{"pids limit with reserve", func(s *sandbox.Spec) { s.Limits.Pids = 50 },
			func(t *testing.T, i *Instance) string { return cgroupFile(t, i, "pids/pids.max", "pids.max") }, strconv.Itoa(50 + guestPidsReserve)},
		{"memory limit", func(s *sandbox.Spec) { s.Limits.Memory = 64 << 20 },
			func(t *testing.T, i *Instance) string {
				return cgroupFile(t, i, "memory/memory.limit_in_bytes", "memory.max")
			}, strconv.Itoa(64 << 20)},
		{"cpu limit", func(s *sandbox.Spec) { s.Limits.CPUs = 0.5 },
			func(t *testing.T, i *Instance) string {
				return sh(t, i, "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us 2>/dev/null || tr ' ' '\\n' < /sys/fs/cgroup/cpu.max")
			}, "50000\n100000"},
		{"ulimits", func(s *sandbox.Spec) { s.Limits.Ulimits = []sandbox.Ulimit{{Name: "nofile", Soft: 100, Hard: 200}} },
			shell("ulimit -Sn; ulimit -Hn"), "100\n200"},
		{"environment", func(s *sandbox.Spec) { s.Env = map[string]string{"GREETING": "hello = world"} }, shell("echo $GREETING"), "hello = world"},
		{"no network", nil, shell("ls /sys/class/net"), "lo"},
		{"bridge with names", func(s *sandbox.Spec) {
			s.Network, s.DNS, s.ExtraHosts = "bridge", []string{"10.9.8.7"}, []string{"db.test:10.1.2.3"}
		}, shell("grep -o '^nameserver .*' /etc/resolv.conf; grep -o '^10.1.2.3.*' /etc/hosts | tr '\\t' ' '"), "nameserver 10.9.8.7\n10.1.2.3 db.test"},
		{"workdir", func(s *sandbox.Spec) { s.Workdir = "/bin" }, shell("readlink /proc/self/cwd"), "/bin"},
	}
	onEach(t, func(t *testing.T, l *lab) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				changes := []func(*sandbox.Spec){}
				if c.change != nil {
					changes = append(changes, c.change)
				}
				if got := c.look(t, l.start(t, changes...)); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		}
	})
}

func shell(line string) func(*testing.T, *Instance) string {
	return func(t *testing.T, i *Instance) string { t.Helper(); return sh(t, i, line) }
}

func TestMountsInside(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		writable, readable := sharedDir(t), sharedDir(t)
		below := filepath.Join(readable, "below")
		mountBelow(t, below)
		volume := "atoll-test-" + strings.ToLower(filepath.Base(l.spec().Name))
		t.Cleanup(func() { removeVolume(t, l, volume) })
		i := l.start(t, func(s *sandbox.Spec) {
			s.Mounts = []sandbox.Mount{
				{Source: writable, Target: "/workspace", Kind: sandbox.MountWorkspace},
				{Source: readable, Target: "/agent", ReadOnly: true, Kind: sandbox.MountAgent},
			}
			s.Volumes = []sandbox.Volume{{Name: volume, Target: "/vol"}}
			s.User, s.Workdir = "0:0", "/workspace"
		})
		sh(t, i, "echo made > made")
		if text, err := os.ReadFile(filepath.Join(writable, "made")); err != nil || string(text) != "made\n" {
			t.Errorf("workspace on the host: %q, %v", text, err)
		}
		if got := sh(t, i, "touch /agent/x 2>&1 || true"); !strings.Contains(got, "Read-only") {
			t.Errorf("writing to a read-only mount: %q", got)
		}
		// A file system mounted below a read-only source must not come in writable.
		sh(t, i, "touch /agent/below/x 2>/dev/null || true")
		if _, err := os.Stat(filepath.Join(below, "x")); err == nil {
			t.Error("a mount below a read-only source was written to")
		}
		if got := sh(t, i, "echo kept > /vol/x && cat /vol/x"); got != "kept" {
			t.Errorf("volume: %q", got)
		}
	})
}

// sharedDir is a directory that every user may enter and write to.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mountBelow(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=777,size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// Everything that an image says of itself, against us.
const wilfulImage = `FROM ` + enginetest.TinyImage + `
ENTRYPOINT ["/bin/false"]
CMD ["nonsense"]
USER 4321:4321
HEALTHCHECK --interval=1s CMD /bin/false
VOLUME /data
STOPSIGNAL SIGKILL
WORKDIR /bin
LABEL atoll.account=evil atoll.setup=1 atoll.installation=another openclaw.configHash=wrong
`

func TestWilfulImage(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		ref := buildImage(t, l, wilfulImage)
		i := l.start(t, func(s *sandbox.Spec) { s.Image, s.User, s.Workdir = ref, "", "" })
		if got := sh(t, i, "id -u"); got != "4321" {
			t.Errorf("uid is %s, want the image's 4321", got)
		}
		labels := i.Seen().Labels
		for label, want := range map[string]string{sandbox.LabelAccount: "", sandbox.LabelSetup: "",
			sandbox.LabelInstallation: l.options.Installation, sandbox.LabelConfigHash: "hash"} {
			if labels[label] != want {
				t.Errorf("label %s is %q, want %q", label, labels[label], want)
			}
		}
		if got := i.Seen().Image; got != ref {
			t.Errorf("image is %q, want %q as asked", got, ref)
		}
		before := anonymousVolumes(t, l, i)
		if len(before) != 1 {
			t.Fatalf("volumes of the container: %v, want the image's one", before)
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if there, err := l.hasVolume(t.Context(), before[0]); there || err != nil {
			t.Errorf("the image's volume is left (%v)", err)
		}
	})
}

// anonymousVolumes are the volumes that an image's VOLUME lines brought.
func anonymousVolumes(t *testing.T, l *lab, i *Instance) (names []string) {
	t.Helper()
	found, err := l.inspect(t.Context(), i.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found.Mounts {
		if m.Type == "volume" {
			names = append(names, m.Name)
		}
	}
	return names
}

// What a set-up command needs to install packages, and what takes it away.
func TestInstallingPackages(t *testing.T) {
	const install = `cd /tmp && mkdir -p p/DEBIAN p/opt && echo hi > p/opt/hi &&
printf 'Package: hi\nVersion: 1\nArchitecture: all\nMaintainer: me <me@example.org>\nDescription: hi\n' > p/DEBIAN/control &&
chown -R _apt p/opt && dpkg-deb -b p hi.deb >/dev/null && dpkg -i hi.deb >/dev/null && stat -c %U /opt/hi`
	cases := []struct {
		name    string
		capDrop []string
		works   bool
	}{
		{"the engine's default capabilities", nil, true},
		{"the five that dpkg and apt use", []string{"MKNOD", "NET_RAW", "SYS_CHROOT", "AUDIT_WRITE", "NET_BIND_SERVICE", "KILL", "SETFCAP", "SETPCAP", "FSETID"}, true},
		{"none", []string{"ALL"}, false},
	}
	onEach(t, func(t *testing.T, l *lab) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				i := l.start(t, func(s *sandbox.Spec) {
					s.Image, s.User, s.ReadOnlyRoot, s.CapDrop = enginetest.Image, "0:0", false, c.capDrop
				})
				a := tell(t, i, map[string]any{"argv": []string{"/bin/sh", "-c", install}})
				if works := a.Code == 0 && strings.HasSuffix(a.Output, "_apt\n"); works != c.works {
					t.Errorf("works: %v, want %v: %s", works, c.works, a.Output)
				}
			})
		}
	})
}
