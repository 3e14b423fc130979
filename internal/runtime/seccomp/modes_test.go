package seccomp

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// modeAttempts are calls with the arguments that the kernel looks at, and
// whether a sandbox that can write to the host may make them.
var modeAttempts = []struct {
	call    string
	args    [6]uint64
	allowed bool
}{
	{"chmod", [6]uint64{0, 0o755}, true},
	{"chmod", [6]uint64{0, 0o1777}, true},
	{"chmod", [6]uint64{0, 0o4755}, false},
	{"chmod", [6]uint64{0, 0o2755}, false},
	{"chmod", [6]uint64{0, 0o4755 | 1<<16 | 1<<40}, false}, // the kernel looks at sixteen bits
	{"fchmod", [6]uint64{3, 0o644}, true},
	{"fchmod", [6]uint64{3, 0o6755}, false},
	{"fchmodat", [6]uint64{0, 0, 0o700}, true},
	{"fchmodat", [6]uint64{0, 0, 0o4700}, false},
	{"fchmodat2", [6]uint64{0, 0, 0o700, 0o4000}, true},
	{"fchmodat2", [6]uint64{0, 0, 0o2700}, false},
	{"creat", [6]uint64{0, 0o666}, true},
	{"creat", [6]uint64{0, 0o4666}, false},
	{"mknod", [6]uint64{0, unix.S_IFREG | 0o666}, true},
	{"mknod", [6]uint64{0, unix.S_IFREG | 0o4666}, false},
	{"mknodat", [6]uint64{0, 0, unix.S_IFIFO | 0o666}, true},
	{"mknodat", [6]uint64{0, 0, unix.S_IFREG | 0o2666}, false},
	{"open", [6]uint64{0, unix.O_RDWR, 0o4755}, true}, // a register that was not set
	{"open", [6]uint64{0, unix.O_CREAT, 0o644}, true},
	{"open", [6]uint64{0, unix.O_CREAT, 0o4644}, false},
	{"openat", [6]uint64{0, 0, unix.O_DIRECTORY, 0o4755}, true},
	{"openat", [6]uint64{0, 0, unix.O_CREAT | unix.O_EXCL, 0o600}, true},
	{"openat", [6]uint64{0, 0, unix.O_CREAT | unix.O_EXCL, 0o2600}, false},
	{"openat", [6]uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o4600}, false},
	{"openat", [6]uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o600}, true},
	{"mkdir", [6]uint64{0, 0o2755}, true},
	{"openat2", [6]uint64{}, false},
}

func wantPlainModes(t *testing.T, program Program, arch string) {
	t.Helper()
	numbers, err := callNumbers(arch)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range modeAttempts {
		number, ok := numbers[a.call]
		if !ok {
			continue // arm64 has no open and no chmod
		}
		want := uint32(unix.SECCOMP_RET_ALLOW)
		if !a.allowed {
			want = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		}
		if a.call == pointerCall {
			want = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
		}
		if got := interpret(t, program, &call{number, auditArch(arch), a.args}); got != want {
			t.Errorf("%s: %s(%#o): %#x, want %#x", arch, a.call, a.args, got, want)
		}
	}
}

func TestPlainModes(t *testing.T) {
	for arch := range machines {
		program, err := compile(arch, PlainModes)
		if err != nil {
			t.Fatal(err)
		}
		wantPlainModes(t, program, arch)
	}
}

// profilesWithModes are configured profiles of every kind of default.
var profilesWithModes = map[string]string{
	"all but one call": `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["acct"],"action":"SCMP_ACT_ERRNO"},{"names":["chmod","openat"],"action":"SCMP_ACT_ALLOW"}]}`,
	"a list": `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"name":"openat","action":"SCMP_ACT_ALLOW"},
		{"names":["chmod","fchmod","fchmodat","fchmodat2","creat","mknod","mknodat","open","openat2","mkdir"],"action":"SCMP_ACT_ALLOW"}]}`,
}

// A profile of one's own does not lend rights either.
func TestConfiguredProfilesHavePlainModes(t *testing.T) {
	for name, text := range profilesWithModes {
		t.Run(name, func(t *testing.T) {
			program, err := CompileProfile([]byte(text), "amd64", PlainModes)
			if err != nil {
				t.Fatal(err)
			}
			wantPlainModes(t, program, "amd64")
			rewritten, err := PlainProfile([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if program, err = CompileProfile(rewritten, "amd64", AnyMode); err != nil {
				t.Fatal(err)
			}
			wantPlainModes(t, program, "amd64")
		})
	}
}

// What engines make of a rewritten profile is what our own compiler makes.
func TestPlainProfilesDecideAsLibseccomp(t *testing.T) {
	library := newLibseccomp(t)
	for name, text := range profilesWithModes {
		t.Run(name, func(t *testing.T) {
			rewritten, err := PlainProfile([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			var read moby.Seccomp
			if err := json.Unmarshal(rewritten, &read); err != nil {
				t.Fatal(err)
			}
			resolved := read.LinuxSeccomp
			resolved.Syscalls = nil
			for _, rule := range read.Syscalls {
				resolved.Syscalls = append(resolved.Syscalls, rule.LinuxSyscall)
			}
			compareWith(t, library, &resolved, "amd64")
		})
	}
}

func TestProfilesThatCannotBeMadePlain(t *testing.T) {
	for name, text := range map[string]string{
		"conditions":   `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["chmod"],"action":"SCMP_ACT_ALLOW","args":[{"index":1,"op":"SCMP_CMP_EQ","value":4}]}]}`,
		"capabilities": `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["chmod"],"action":"SCMP_ACT_ERRNO","includes":{"caps":["CAP_FSETID"]}}]}`,
		"not JSON":     `allow`,
	} {
		if got, err := PlainProfile([]byte(text)); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The kernel, under the filter: a file gets ordinary permissions, and no others.
func TestKernelRefusesLendingModes(t *testing.T) {
	program, err := compile(runtime.GOARCH, PlainModes)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	errs := make(chan [2]error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its filter
		var answers [2]error
		answers[0] = under(program, func() error { return unix.Fchmodat(unix.AT_FDCWD, path, 0o755, 0) })
		answers[1] = unix.Fchmodat(unix.AT_FDCWD, path, 0o4755, 0)
		errs <- answers
	}()
	if got := <-errs; got[0] != nil || !errors.Is(got[1], unix.EPERM) {
		t.Errorf("0755: %v; 4755: %v", got[0], got[1])
	}
}

// Every call of the profile that has a mode among its arguments is known here.
func TestModeCallsAreInTheProfile(t *testing.T) {
	allowed := map[string]bool{}
	for _, rule := range rules("amd64") {
		for _, name := range rule.Names {
			allowed[name] = allowed[name] || rule.Action == specs.ActAllow
		}
	}
	for name := range modeCalls {
		if !allowed[name] {
			t.Errorf("%s is not allowed by the profile: was it renamed?", name)
		}
		delete(allowed, name)
	}
	for name := range allowed {
		if strings.Contains(name, "chmod") || strings.HasPrefix(name, "creat") || strings.HasPrefix(name, "mknod") {
			t.Errorf("%s sets modes and is not restricted", name)
		}
	}
}
