package seccomp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// libseccomp compiles profiles with the library that runc and Docker use.
type libseccomp struct{ program string }

func newLibseccomp(t *testing.T) *libseccomp {
	t.Helper()
	program := filepath.Join(t.TempDir(), "compile")
	out, err := exec.CommandContext(t.Context(), "gcc", "-O1", "-o", program, "testdata/libseccomp/compile.c", "-lseccomp").CombinedOutput()
	if err != nil {
		need.Missing(t, fmt.Errorf("libseccomp's headers and gcc are needed (scripts/deps.sh installs them): %w\n%s", err, out))
	}
	return &libseccomp{program}
}

// compile returns libseccomp's program, and the names that it does not know.
func (l *libseccomp) compile(t *testing.T, profile *specs.LinuxSeccomp, arch string) (Program, []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), l.program)
	var out, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(recipe(t, profile, arch)), &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("libseccomp: %v\n%s", err, complaints.String())
	}
	var program Program
	for raw := range slices.Chunk(out.Bytes(), 8) {
		program = append(program, unix.SockFilter{Code: binary.LittleEndian.Uint16(raw), Jt: raw[2], Jf: raw[3], K: binary.LittleEndian.Uint32(raw[4:])})
	}
	return program, strings.Fields(strings.ReplaceAll(complaints.String(), "unknown ", ""))
}

// recipe says a profile in the words that the C program reads.
func recipe(t *testing.T, profile *specs.LinuxSeccomp, arch string) string {
	t.Helper()
	operators := map[specs.LinuxSeccompOperator]int{specs.OpNotEqual: 1, specs.OpLessThan: 2, specs.OpLessEqual: 3,
		specs.OpEqualTo: 4, specs.OpGreaterEqual: 5, specs.OpGreaterThan: 6, specs.OpMaskedEqual: 7}
	action := func(a specs.LinuxSeccompAction, errno *uint) uint32 {
		value, err := outcome(a, errno)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	var out strings.Builder
	fmt.Fprintln(&out, auditArch(arch), action(profile.DefaultAction, profile.DefaultErrnoRet))
	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			fmt.Fprintln(&out, name, action(rule.Action, rule.ErrnoRet), len(rule.Args))
			for _, c := range rule.Args {
				fmt.Fprintln(&out, c.Index, operators[c.Op], c.Value, c.ValueTwo)
			}
		}
	}
	return out.String()
}

// Every number that the kernel has or may get, with arguments around every
// value that a rule mentions: our program and libseccomp's decide alike.
func TestProgramDecidesAsLibseccomp(t *testing.T) {
	library := newLibseccomp(t)
	for arch := range machines {
		for _, modes := range []Modes{AnyMode, PlainModes, browserFile} {
			t.Run(arch+"/"+string(modes), func(t *testing.T) {
				profile, err := describeAny(arch, modes)
				if err != nil {
					t.Fatal(err)
				}
				compareWith(t, library, profile, arch)
			})
		}
	}
}

// A profile of every operator and action, on values with both halves set.
func TestConditionsDecideAsLibseccomp(t *testing.T) {
	library := newLibseccomp(t)
	errno := uint(unix.EXDEV)
	const value = 0x1_8000_0005
	rules := []specs.LinuxSyscall{
		{Names: []string{"read"}, Action: specs.ActErrno, ErrnoRet: &errno},
		{Names: []string{"write"}, Action: specs.ActTrap},
		{Names: []string{"close"}, Action: specs.ActKillProcess},
		{Names: []string{"fstat"}, Action: specs.ActLog},
		{Names: []string{"mmap"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
			{Index: 0, Op: specs.OpGreaterEqual, Value: value}, {Index: 5, Op: specs.OpLessThan, Value: value}, {Index: 2, Op: specs.OpNotEqual, Value: 7}}},
	}
	operators := []specs.LinuxSeccompOperator{specs.OpNotEqual, specs.OpLessThan, specs.OpLessEqual, specs.OpEqualTo, specs.OpGreaterEqual, specs.OpGreaterThan}
	for i, name := range []string{"dup", "fcntl", "flock", "fsync", "getdents64", "mkdirat"} {
		rules = append(rules, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: uint(i), Op: operators[i], Value: value}}})
	}
	rules = append(rules, specs.LinuxSyscall{Names: []string{"chdir"}, Action: specs.ActAllow,
		Args: []specs.LinuxSeccompArg{{Index: 3, Op: specs.OpMaskedEqual, Value: 0xff_0000_00ff, ValueTwo: 0x11_0000_0022}}})
	for arch := range machines {
		t.Run(arch, func(t *testing.T) {
			compareWith(t, library, &specs.LinuxSeccomp{DefaultAction: specs.ActKillThread, Syscalls: rules}, arch)
		})
	}
}

func compareWith(t *testing.T, library *libseccomp, profile *specs.LinuxSeccomp, arch string) {
	t.Helper()
	ours, err := assemble(profile, arch)
	if err != nil {
		t.Fatal(err)
	}
	theirs, unknown := library.compile(t, profile, arch)
	t.Logf("%s: %d instructions, libseccomp makes %d; it does not know %q", arch, len(ours), len(theirs), unknown)
	newer, last := tooNew(t, profile, arch, unknown)
	otherwise, _ := outcome(profile.DefaultAction, profile.DefaultErrnoRet)
	interesting, calls := values(profile), 0
	for _, foreign := range []uint32{auditArch(arch), unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
		for _, number := range probedNumbers() {
			sets := argumentsFor(interesting, calls)
			if foreign != auditArch(arch) || number > maxCall {
				sets = sets[:1] // no rule can ask for arguments
			}
			for _, args := range sets {
				c := &call{number, foreign, args}
				got, want := interpret(t, ours, c), interpret(t, theirs, c)
				if foreign == auditArch(arch) && number > last && want == otherwise {
					want = beyond(otherwise) // as runc adds to libseccomp's
				}
				if calls++; got != want && !newer[number] {
					t.Fatalf("call %d of %#x with %#x: %#x, libseccomp says %#x", number, foreign, args, got, want)
				}
			}
		}
	}
	t.Logf("%s: %d calls decided alike", arch, calls)
}

// tooNew are the numbers of calls that this libseccomp has no name for, and the
// largest that the profile names.
func tooNew(t *testing.T, profile *specs.LinuxSeccomp, arch string, unknown []string) (newer map[uint32]bool, last uint32) {
	t.Helper()
	numbers, err := callNumbers(arch)
	if err != nil {
		t.Fatal(err)
	}
	newer = map[uint32]bool{}
	for _, name := range unknown {
		// uretprobe is as new, but took a number that was free on amd64.
		if numbers[name] > 0 && numbers[name] < 449 && name != "uretprobe" {
			t.Errorf("%s: libseccomp does not know %s (%d), which is old", arch, name, numbers[name])
		}
		newer[numbers[name]] = numbers[name] > 0
	}
	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			last = max(last, numbers[name])
		}
	}
	return newer, last
}

// maxCall is beyond every number that the kernel has.
const maxCall = 512

// probedNumbers are all that may be calls, some beyond, and x32's.
func probedNumbers() (numbers []uint32) {
	for n := range uint32(maxCall) {
		numbers = append(numbers, n, n|0x40000000)
	}
	return append(numbers, 1<<16, 0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff)
}

// values are those that rules compare with, and their neighbours, also with the
// other half of the register set.
func values(profile *specs.LinuxSeccomp) []uint64 {
	found := []uint64{0, 1, 1 << 31, 1 << 32, 1<<64 - 1}
	for _, rule := range profile.Syscalls {
		for _, c := range rule.Args {
			for _, v := range []uint64{c.Value, c.ValueTwo} {
				found = append(found, v-1, v, v+1, v|1<<32, v^1<<32, v&0xffffffff, v|1<<63)
			}
		}
	}
	for bit := range 64 {
		found = append(found, 1<<bit)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// argumentsFor sets all registers to each value, and some to any of them.
func argumentsFor(values []uint64, seed int) (sets [][6]uint64) {
	random := rand.New(rand.NewPCG(1, uint64(seed)))
	for _, v := range values {
		sets = append(sets, [6]uint64{v, v, v, v, v, v})
	}
	for range 16 {
		var set [6]uint64
		for i := range set {
			set[i] = values[random.IntN(len(values))]
		}
		sets = append(sets, set)
	}
	return sets
}
