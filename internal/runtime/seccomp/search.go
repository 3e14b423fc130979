package seccomp

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// span is a range of call numbers, up to the next one's first, and the code
// that judges them.
type span struct {
	first uint32
	code  Program
}

// divide cuts the numbers into spans that are judged alike, in order.
func divide(profile *specs.LinuxSeccomp, arch string) ([]span, error) {
	judged, err := judgeCalls(profile, arch)
	if err != nil {
		return nil, err
	}
	otherwise, err := outcome(profile.DefaultAction, profile.DefaultErrnoRet)
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: default: %w", err)
	}
	spans := []span{{0, Program{answer(otherwise)}}}
	for _, call := range judged {
		if last := &spans[len(spans)-1]; last.first == call.number {
			last.code = call.code
		} else {
			spans = append(spans, span{call.number, call.code})
		}
		spans = append(spans, span{call.number + 1, Program{answer(otherwise)}})
	}
	spans[len(spans)-1].code = Program{answer(beyond(otherwise))}
	return merge(spans), nil
}

// beyond is the verdict on calls newer than all that a profile names. Programs
// try new calls and fall back to old ones when the kernel has none; they do not
// when it answers that the call is forbidden. runc does the same.
func beyond(otherwise uint32) uint32 {
	if otherwise&unix.SECCOMP_RET_ACTION_FULL == unix.SECCOMP_RET_ERRNO {
		return unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	}
	return otherwise
}

// merge joins neighbours that are judged alike.
func merge(spans []span) []span {
	return slices.CompactFunc(spans, func(a, b span) bool { return slices.Equal(a.code, b.code) })
}

// search finds the span of the number in the accumulator by halving.
func search(spans []span) Program {
	if len(spans) == 1 {
		return spans[0].code
	}
	half := len(spans) / 2
	below, above := search(spans[:half]), search(spans[half:])
	program := atLeast(spans[half].first, len(below))
	return append(append(program, below...), above...)
}

// atLeast skips instructions when the number is value or more. The offset of a
// conditional jump has eight bits.
func atLeast(value uint32, skip int) Program {
	const farthest = 255
	if skip <= farthest {
		return Program{jump(unix.BPF_JGE, value, uint8(skip), 0)}
	}
	return Program{jump(unix.BPF_JGE, value, 0, 1), {Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(skip)}}
}

// judgedCall is a call that rules name, and the code that judges it.
type judgedCall struct {
	number uint32
	code   Program
}

// judgeCalls compiles the rules of each call. Names that the architecture does
// not have are those of others, and left out.
func judgeCalls(profile *specs.LinuxSeccomp, arch string) ([]judgedCall, error) {
	numbers, err := callNumbers(arch)
	if err != nil {
		return nil, err
	}
	byNumber := map[uint32][]specs.LinuxSyscall{}
	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			if number, ok := numbers[name]; ok {
				byNumber[number] = append(byNumber[number], specs.LinuxSyscall{Names: []string{name}, Action: rule.Action, ErrnoRet: rule.ErrnoRet, Args: rule.Args})
			}
		}
	}
	var judged []judgedCall
	for number, rules := range byNumber {
		code, err := judge(rules, profile)
		if err != nil {
			return nil, fmt.Errorf("seccomp profile: %s: %w", rules[0].Names[0], err)
		}
		judged = append(judged, judgedCall{number, code})
	}
	slices.SortFunc(judged, func(a, b judgedCall) int { return cmp.Compare(a.number, b.number) })
	return judged, nil
}
