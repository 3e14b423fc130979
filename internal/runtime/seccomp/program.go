package seccomp

import (
	"encoding/binary"
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// A Program is a filter as the kernel takes it (struct sock_filter).
type Program []unix.SockFilter

// maxProgram is the kernel's limit of instructions (BPF_MAXINSNS).
const maxProgram = 4096

// Bytes is the program as it lies in memory on every architecture that we have
// a guest for, so that one process can hand it to another.
func (p Program) Bytes() []byte {
	var out []byte
	for _, i := range p {
		out = binary.LittleEndian.AppendUint16(out, i.Code)
		out = append(out, i.Jt, i.Jf)
		out = binary.LittleEndian.AppendUint32(out, i.K)
	}
	return out
}

// assemble compiles a profile whose rules were resolved for arch. Calls of any
// other architecture end the process, as the profile names none.
func assemble(profile *specs.LinuxSeccomp, arch string) (Program, error) {
	spans, err := divide(profile, arch)
	if err != nil {
		return nil, err
	}
	program := append(checkArch(arch), search(spans)...)
	if len(program) > maxProgram {
		return nil, fmt.Errorf("seccomp profile: %d instructions, and the kernel takes %d", len(program), maxProgram)
	}
	return program, nil
}

// checkArch ends processes that make calls of another architecture, and leaves the
// call's number in the accumulator. On amd64 the kernel counts x32 as its own
// architecture and tells it by a bit of the number; -1 is no call, but what a
// tracer leaves of one that it forbids.
func checkArch(arch string) Program {
	const x32 = 0x40000000
	program := Program{load(offsetArch), jump(unix.BPF_JEQ, auditArch(arch), 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS), load(offsetNumber)}
	if arch == "amd64" {
		program = append(program, jump(unix.BPF_JGE, x32, 0, 2), jump(unix.BPF_JEQ, ^uint32(0), 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS))
	}
	return program
}

func auditArch(arch string) uint32 {
	return map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[arch]
}

// Offsets in what a filter sees of a call (struct seccomp_data).
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(test uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: value}
}

func answer(outcome uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: outcome}
}

// outcome is what the kernel is told to do with a call. Actions that need a
// tracer or a listener outside would stop the sandbox for ever: there is none.
func outcome(action specs.LinuxSeccompAction, errno *uint) (uint32, error) {
	switch action {
	case specs.ActAllow:
		return unix.SECCOMP_RET_ALLOW, nil
	case specs.ActLog:
		return unix.SECCOMP_RET_LOG, nil
	case specs.ActErrno:
		return refusal(errno)
	case specs.ActTrap:
		return unix.SECCOMP_RET_TRAP, nil
	case specs.ActKill, specs.ActKillThread:
		return unix.SECCOMP_RET_KILL_THREAD, nil
	case specs.ActKillProcess:
		return unix.SECCOMP_RET_KILL_PROCESS, nil
	default:
		return 0, fmt.Errorf("action %q is not supported", action)
	}
}

// refusal is an error number, EPERM where the rule names none. The kernel
// makes no sense of larger ones.
func refusal(errno *uint) (uint32, error) {
	const maxErrno = 4095
	if errno == nil {
		return unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM), nil
	}
	if *errno > maxErrno {
		return 0, fmt.Errorf("errnoRet %d is not an error number", *errno)
	}
	return unix.SECCOMP_RET_ERRNO | uint32(*errno), nil
}
