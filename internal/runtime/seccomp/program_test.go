package seccomp

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The embedded numbers are those of golang.org/x/sys/unix.
func TestCallNumbers(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`SYS_([A-Z0-9_]+)\s+= (\d+)`)
	for arch := range machines {
		source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "unix", "zsysnum_linux_"+arch+".go"))
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for _, found := range line.FindAllStringSubmatch(string(source), -1) {
			if found[1] != "ARCH_SPECIFIC_SYSCALL" { // the first of a range, not a call
				want.WriteString(strings.ToLower(found[1]) + " " + found[2] + "\n")
			}
		}
		if got, err := os.ReadFile("numbers/" + arch); err != nil || string(got) != want.String() {
			t.Errorf("numbers/%s differs from golang.org/x/sys (%v); it should read:\n%s", arch, err, want.String())
		}
	}
}

// The kernel accepts the program, and the process goes on under it.
func TestKernelTakesTheProgram(t *testing.T) {
	program, err := compile(runtime.GOARCH, PlainModes)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(program.Bytes()); got != 8*len(program) || got > 4096 {
		t.Errorf("%d instructions are %d bytes; a filter this large is a mistake", len(program), got)
	}
	refused := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its filter
		refused <- under(program, func() error { return unix.Unshare(unix.CLONE_NEWUTS) })
	}()
	if err := <-refused; !errors.Is(err, unix.EPERM) {
		t.Errorf("unshare under the filter: %v, want EPERM", err)
	}
}

// under loads the program into the calling thread and makes a call.
func under(program Program, attempt func() error) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog))); errno != 0 {
		return errno
	}
	return attempt()
}

func TestCompileProfile(t *testing.T) {
	const value = `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
		{"names":["keyctl"],"action":"SCMP_ACT_ERRNO","errnoRet":95},
		{"name":"bpf","action":"SCMP_ACT_ERRNO"},
		{"names":["mount"],"action":"SCMP_ACT_ERRNO","includes":{"caps":["CAP_SYS_ADMIN"]}},
		{"names":["umount2"],"action":"SCMP_ACT_ERRNO","excludes":{"arches":["amd64","arm64"]}}]}`
	program, err := CompileProfile([]byte(value), "amd64", AnyMode)
	if err != nil {
		t.Fatal(err)
	}
	numbers, _ := callNumbers("amd64")
	for name, want := range map[string]uint32{
		"keyctl": unix.SECCOMP_RET_ERRNO | 95, "bpf": unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM),
		"mount": unix.SECCOMP_RET_ALLOW, "umount2": unix.SECCOMP_RET_ALLOW, "read": unix.SECCOMP_RET_ALLOW,
	} {
		if got := interpret(t, program, &call{number: numbers[name], arch: unix.AUDIT_ARCH_X86_64}); got != want {
			t.Errorf("%s: %#x, want %#x", name, got, want)
		}
	}
}

func TestProfilesThatCannotBeCompiled(t *testing.T) {
	const start, end = `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],`, `}]}`
	cases := []struct{ name, text, want string }{
		{"not JSON", "deny all", "invalid character"},
		{"no default", `{"syscalls":[]}`, `action "" is not supported`},
		{"nothing filtered", `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mount"],"action":"SCMP_ACT_ERRNO","includes":{"caps":["CAP_SYS_ADMIN"]}}]}`, "allows every call"},
		{"a listener", start + `"action":"SCMP_ACT_NOTIFY"` + end, `read: action "SCMP_ACT_NOTIFY" is not supported`},
		{"a tracer", start + `"action":"SCMP_ACT_TRACE"` + end, "not supported"},
		{"no such error", start + `"action":"SCMP_ACT_ERRNO","errnoRet":5000` + end, "not an error number"},
		{"no such argument", start + `"action":"SCMP_ACT_ALLOW","args":[{"index":6,"op":"SCMP_CMP_EQ"}]` + end, "calls have six"},
		{"no such operator", start + `"action":"SCMP_ACT_ALLOW","args":[{"index":0,"op":"SCMP_CMP_LIKE"}]` + end, "not known"},
		{"rules that disagree", start + `"action":"SCMP_ACT_ALLOW"},{"names":["read"],"action":"SCMP_ACT_LOG"` + end, "different actions"},
		{"flags", `{"defaultAction":"SCMP_ACT_ERRNO","flags":["SECCOMP_FILTER_FLAG_LOG"]}`, "flags"},
		{"too many conditions", start + `"action":"SCMP_ACT_ALLOW","args":[` + strings.Repeat(`{"index":0,"op":"SCMP_CMP_EQ"},`, 7) + `{"index":0,"op":"SCMP_CMP_EQ"}]` + end, "more conditions"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := CompileProfile([]byte(c.text), "amd64", AnyMode); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	if _, err := CompileProfile([]byte("{}"), "pdp11", AnyMode); err == nil {
		t.Error("an unknown architecture got a program")
	}
}

// A profile large enough to need far jumps decides like a small one.
func TestFarJumps(t *testing.T) {
	numbers, _ := callNumbers("amd64")
	var rules []string
	for name := range numbers {
		rules = append(rules, `{"names":["`+name+`"],"action":"SCMP_ACT_ERRNO","errnoRet":5,"args":[{"index":1,"op":"SCMP_CMP_EQ","value":`+strconv.Itoa(int(numbers[name]))+`}]}`)
	}
	program, err := CompileProfile([]byte(`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[`+strings.Join(rules, ",")+`]}`), "amd64", AnyMode)
	if err != nil {
		t.Fatal(err)
	}
	for name, number := range numbers {
		for value, want := range map[uint64]uint32{uint64(number): unix.SECCOMP_RET_ERRNO | 5, uint64(number) + 1: unix.SECCOMP_RET_ALLOW} {
			if got := interpret(t, program, &call{number: number, arch: unix.AUDIT_ARCH_X86_64, args: [6]uint64{0, value}}); got != want {
				t.Errorf("%s(_, %d): %#x, want %#x", name, value, got, want)
			}
		}
	}
}

func TestBytesAreTheInstructions(t *testing.T) {
	got := Program{{Code: 0x1234, Jt: 5, Jf: 6, K: 0x89abcdef}}.Bytes()
	if binary.BigEndian.Uint64(got) != 0x34120506_efcdab89 {
		t.Errorf("got % x", got)
	}
}
