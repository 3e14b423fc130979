package docker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/seccomp"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// The filter as the kernel applies it in a real sandbox. The first two lines
// show that the probe can tell a refusal from a success.
func TestFilterInside(t *testing.T) {
	want := []string{
		"getpid=ok", "socket-unix=ok",
		"unshare-user=EPERM", "clone-user=EPERM", "clone3=ENOSYS", "setns=EPERM",
		"keyctl=EPERM", "add_key=EPERM", "request_key=EPERM", "bpf=EPERM", "io_uring_setup=EPERM",
		"ptrace=EPERM", "process_vm_readv=EPERM", "perf_event_open=EPERM", "userfaultfd=EPERM", "open_by_handle_at=EPERM",
		"mount=EPERM", "chroot=EPERM", "kexec_load=EPERM", "socket-alg=EPERM", "socket-vsock=EPERM", "personality-norandomize=EPERM",
	}
	onEach(t, func(t *testing.T, l *lab) {
		// Root with the engine's default capabilities: the filter alone refuses.
		i := l.start(t, func(s *sandbox.Spec) { s.User, s.CapDrop = "0:0", nil })
		if got := strings.Fields(run(t, i, "/.atoll/guest", "calls")); !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// Programs that agents live with must not notice the filter.
func TestProgramsUnderTheFilter(t *testing.T) {
	programs := []struct{ name, line, want string }{
		{"bash with jobs and pipes", `bash -c 'for n in 1 2 3; do (echo $n | cat) & done; wait' | sort | tr -d '\n'`, "123"},
		{"git", `cd /tmp && git init -q r && cd r && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm one && git gc -q && git log --format=%s`, "one"},
		{"python threads, subprocess, sockets", `python3 -c '
import threading, subprocess, socket, os, multiprocessing
t = threading.Thread(target=lambda: None); t.start(); t.join()
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
assert multiprocessing.Pool(2).map(len, ["a", "bb"]) == [1, 2]
print(subprocess.check_output(["echo", "fine"]).decode().strip())'`, "fine"},
		{"curl", `curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:9/ || echo " refused"`, "000 refused"},
		{"go program (the guest's kind)", `/.atoll/guest calls | head -1`, "getpid=ok"},
		{"archives", `cd /tmp && mkdir a && echo x > a/f && tar czf a.tgz a && rm -r a && tar xzf a.tgz && cat a/f`, "x"},
		{"node, if the image has it", `command -v node >/dev/null || { echo 3; exit; }; node -e 'require("fs").readdir("/", () => console.log(1+2))'`, "3"},
	}
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t, func(s *sandbox.Spec) {
			s.Image, s.User = enginetest.Image, "1000:1000"
			s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp"}, {Target: "/dev/shm"}}
			s.Env = map[string]string{"HOME": "/tmp"}
		})
		for _, p := range programs {
			t.Run(p.name, func(t *testing.T) {
				if got := sh(t, i, p.line); got != p.want {
					t.Errorf("got %q, want %q", got, p.want)
				}
			})
		}
	})
}

func TestConfiguredProfile(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile.json")
	// Everything is allowed but one call that is easy to watch.
	text := `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["keyctl"],"action":"SCMP_ACT_ERRNO","errnoRet":95}]}`
	if err := os.WriteFile(profile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t, func(s *sandbox.Spec) { s.SeccompProfile = profile })
		got := run(t, i, "/.atoll/guest", "calls")
		for _, want := range []string{"keyctl=ENOTSUP", "clone3=EINVAL"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is not in %q", want, got)
			}
		}
	})
}

func TestBadProfiles(t *testing.T) {
	dir := t.TempDir()
	cases := []struct{ name, content, want string }{
		{"not JSON", "deny all", "invalid character"},
		{"another document", `{"hello":"world"}`, "defaultAction is missing"},
		{"allows everything", `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[]}`, "allows every call"},
		{"too large", `{"defaultAction":"` + strings.Repeat("x", maxProfile) + `"}`, "larger than"},
	}
	for _, c := range cases {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := seccompProfile(path, "amd64", seccomp.PlainModes); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := seccompProfile(filepath.Join(dir, "missing"), "amd64", seccomp.PlainModes); err == nil {
		t.Error("a missing profile was read")
	}
}
