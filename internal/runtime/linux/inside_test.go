package linux_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// What a spec asks for is what there is inside.
func TestSpecIsHonoured(t *testing.T) {
	need.Root(t, "it has sandboxes of another user")
	l := newSite(t)
	work, extra := l.dir("work"), l.dir("extra")
	i := l.start(func(s *sandbox.Spec) {
		s.User, s.Workdir = "1234:2345", "/home/agent/project"
		s.Mounts = []sandbox.Mount{
			{Source: extra, Target: "/home/agent/project/deep/er"}, // the inner one first
			{Source: work, Target: "/home/agent/project"},
		}
		s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Options: "size=1m,exec"}, {Target: "/run", Options: "mode=755"}}
		s.ExtraHosts = []string{"db:10.1.2.3"}
		s.Limits.Ulimits = []sandbox.Ulimit{{Name: "nofile", Soft: 77, Hard: 99}, {Name: "nproc", Soft: 500, Hard: 500}}
	})
	name := i.Seen().Name
	for script, want := range map[string]string{
		"id -u; id -g; id -G":                             "1234\n2345\n2345",
		"pwd":                                             "/home/agent/project",
		"hostname; cat /etc/hostname":                     name + "\n" + name,
		"grep db /etc/hosts":                              "10.1.2.3\tdb",
		"ulimit -n; ulimit -Hn; ulimit -Hc":               "77\n99\n0",
		"touch a deep/er/b && stat -c %u a deep/er/b":     "1234\n1234",
		"df -k --output=size /tmp | tail -n1 | tr -d ' '": "1024",
		"cp /bin/true /tmp/x && /tmp/x && echo runs":      "runs",
		"stat -c %a /run /tmp":                            "755\n1777",
		"cat /sys/class/net/lo/operstate":                 "unknown",
		"cat /proc/1/comm; ls /.atoll":                    "guest\nguest\nwire",
		"grep ' /.atoll/guest ' /proc/mounts | cut -d' ' -f4 | cut -d, -f1": "ro",
		"readlink /dev/ptmx /dev/fd":                                        "pts/ptmx\n/proc/self/fd",
		"wc -c </proc/keys; wc -c </proc/interrupts":                        "0\n0",
		"grep -c . /proc/sys/kernel/hostname":                               "1",
		"echo x 2>/dev/null >/proc/sys/kernel/hostname || echo no":          "no",
	} {
		if got := l.sh(i, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	for _, path := range []string{filepath.Join(work, "a"), filepath.Join(extra, "b")} {
		if facts, err := hostpath.Identify(path); err != nil || facts.UID != 1234 || facts.GID != 2345 {
			t.Errorf("%s on the host: %+v, %v", path, facts, err)
		}
	}
	if out, code := l.try(i, "dd if=/dev/zero of=/tmp/full bs=64k count=100"); code == 0 || !strings.Contains(out, "No space") {
		t.Errorf("/tmp holds more than its size: %s", out)
	}
}

// A root that may be changed keeps the changes over a stop, and loses them with
// the sandbox.
func TestWritableRoot(t *testing.T) {
	for _, user := range []string{"0:0", "1234:1234"} {
		t.Run(user, func(t *testing.T) {
			l := newSite(t)
			i := l.start(func(s *sandbox.Spec) { s.ReadOnlyRoot, s.User = false, user })
			l.sh(i, "mkdir /srv2 && echo kept >/srv2/file && rm -rf /srv")
			if _, code := l.try(i, "touch /usr/x"); code == 0 {
				t.Error("the host's programs can be changed")
			}
			if err := i.Stop(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := i.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := l.sh(i, "cat /srv2/file; ls -d /srv 2>/dev/null || echo gone"); got != "kept\ngone" {
				t.Errorf("after a stop: %q", got)
			}
			if err := i.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left, err := filepath.Glob(filepath.Join(l.state, "linux", "atoll-*")); len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// A mount source that is not the one that was checked is refused, when the
// sandbox is made and when it is started again.
func TestExchangedSource(t *testing.T) {
	l := newSite(t)
	work := l.dir("work")
	facts, err := hostpath.Identify(work)
	if err != nil {
		t.Fatal(err)
	}
	spec := l.spec(func(s *sandbox.Spec) {
		s.Mounts = []sandbox.Mount{{Source: work, Target: "/workspace", Device: facts.Device, Inode: facts.Inode}}
	})
	i, err := l.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(work, work+"-old"); err != nil {
		t.Fatal(err)
	}
	l.dir("work")
	if err := i.Start(t.Context()); !errors.Is(err, sandbox.ErrDenied) {
		t.Errorf("start: %v, want ErrDenied", err)
	}
	other := l.spec(func(s *sandbox.Spec) { s.Mounts = spec.Mounts })
	if _, err := l.Create(t.Context(), other); !errors.Is(err, sandbox.ErrDenied) {
		t.Errorf("create: %v, want ErrDenied", err)
	}
}

// Everything that this runtime cannot do is refused by its name.
func TestGaps(t *testing.T) {
	grouptest.Need(t)
	l := newSite(t)
	for field, change := range map[string]func(*sandbox.Spec){
		"docker.network":         func(s *sandbox.Spec) { s.Network = "bridge" },
		"docker.capDrop":         func(s *sandbox.Spec) { s.CapDrop = []string{"NET_RAW"} },
		"docker.dns":             func(s *sandbox.Spec) { s.DNS = []string{"10.0.0.1"} },
		"docker.gpus":            func(s *sandbox.Spec) { s.GPUs = "all" },
		"docker.apparmorProfile": func(s *sandbox.Spec) { s.AppArmorProfile = "some" },
		"docker.volumes":         func(s *sandbox.Spec) { s.Volumes = []sandbox.Volume{{Name: "v", Target: "/v"}} },
		"docker.user":            func(s *sandbox.Spec) { s.User = "node" },
		"docker.ulimits":         func(s *sandbox.Spec) { s.Limits.Ulimits = []sandbox.Ulimit{{Name: "locks", Soft: 1, Hard: 1}} },
		"docker.tmpfs":           func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Options: "huge=always"}} },
		"docker.cpus":            func(s *sandbox.Spec) { s.Limits.CPUs = 100000 },
		"docker.seccompProfile":  func(s *sandbox.Spec) { s.SeccompProfile = "/no/such/profile.json" },
	} {
		gaps := l.Check(t.Context(), l.spec(change))
		if len(gaps) != 1 || gaps[0].Field != field || gaps[0].Remedy == "" || gaps[0].Reason == "" {
			t.Errorf("%s: %+v", field, gaps)
		}
		if field == "docker.seccompProfile" {
			continue // read when it is started
		}
		if _, err := l.Create(t.Context(), l.spec(change)); !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("%s: create: %v, want ErrUnsupported", field, err)
		}
	}
	if gaps := l.Check(t.Context(), l.spec()); len(gaps) != 0 {
		t.Errorf("an ordinary spec: %+v", gaps)
	}
}

func TestDangerousSpecsAreDenied(t *testing.T) {
	l := newSite(t)
	dir := l.dir("d")
	for name, change := range map[string]func(*sandbox.Spec){
		"the guest's place":   func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: dir, Target: "/.atoll"}} },
		"below it":            func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/x/../.atoll/wire"}} },
		"the root":            func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: dir, Target: "/"}} },
		"the kernel's files":  func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: dir, Target: "/proc/sys"}} },
		"a relative source":   func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: "etc", Target: "/x"}} },
		"a name with a slash": func(s *sandbox.Spec) { s.Name = "../x" },
		"no filter":           func(s *sandbox.Spec) { s.SeccompProfile = "unconfined" },
		"a negative limit":    func(s *sandbox.Spec) { s.Limits.Pids = -1 },
		"a forged host":       func(s *sandbox.Spec) { s.ExtraHosts = []string{"a:1.2.3.4\n5.6.7.8 b"} },
	} {
		if _, err := l.Create(t.Context(), l.spec(change)); !errors.Is(err, sandbox.ErrDenied) {
			t.Errorf("%s: %v, want ErrDenied", name, err)
		}
	}
}

// Nothing inside can put another socket in the place of the guest's, nor fill
// the host's disk beside it; and whoever did is not spoken to.
func TestImpostor(t *testing.T) {
	l := newSite(t)
	for _, readOnly := range []bool{true, false} {
		i := l.start(func(s *sandbox.Spec) { s.ReadOnlyRoot = readOnly })
		for _, script := range []string{": >/.atoll/wire/file", "mv /.atoll/wire/guest.sock /.atoll/wire/old", "rm /.atoll/wire/guest.sock"} {
			if out, code := l.try(i, script); code == 0 {
				t.Errorf("%s: works, with a root that is read-only (%t): %s", script, readOnly, out)
			}
		}
	}
	i := l.start()
	wire := filepath.Join(l.state, "linux", i.Seen().Name, "wire")
	impostor, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(wire, "new"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	impostor.SetUnlinkOnClose(false)
	defer impostor.Close()
	if err := os.Rename(filepath.Join(wire, "new"), filepath.Join(wire, "guest.sock")); err != nil {
		t.Fatal(err)
	}
	if conn, err := i.Dial(t.Context()); !errors.Is(err, sandbox.ErrDenied) {
		t.Errorf("the impostor was spoken to: %v, %v", conn, err)
	}
}

// A process that has the number of a sandbox's guest, but is another, is neither
// taken for it nor killed.
func TestRecycledPID(t *testing.T) {
	l := newSite(t)
	i := l.start()
	name := i.Seen().Name
	path := filepath.Join(l.state, "linux", name, "record.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	// As if our own number had been the guest's, a moment earlier.
	forged := replaceNumber(t, string(text), `"PID":`, os.Getpid())
	if err := os.WriteFile(path, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := l.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if state := again.Seen().State; state != sandbox.StateStopped {
		t.Errorf("it is %s", state)
	}
	if err := again.Kill(t.Context()); err != nil { // and we live on
		t.Error(err)
	}
	if err := again.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.sh(again, "true")
}

// Where nothing can be watched any more, because the kernel counts that by user,
// a guest still serves, and still notices that its socket was removed. The limit
// is that of a user namespace made for this.
func TestGuestWithoutWatches(t *testing.T) {
	l := newSite(t)
	dir := l.dir("wire")
	program, socket := filepath.Join(l.state, "guest"), filepath.Join(dir, "guest.sock")
	if err := os.WriteFile(program, guestProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "sh", "-c",
		`echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"`, "sh", program, "init", "--trust-uid", "--socket", socket)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	awaitSocket(t, socket)
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	awaitSocket(t, socket)
}
