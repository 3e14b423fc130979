package seccomp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// judge compiles the rules of one call: alternatives, and the default where
// none holds. Rules that disagree about one call are refused: which of them
// wins would be a matter of their order.
func judge(rules []specs.LinuxSyscall, profile *specs.LinuxSeccomp) (Program, error) {
	hit, err := outcome(rules[0].Action, rules[0].ErrnoRet)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules[1:] {
		if other, err := outcome(rule.Action, rule.ErrnoRet); err != nil || other != hit {
			return nil, errors.Join(errors.New("several rules with different actions"), err)
		}
	}
	if slices.ContainsFunc(rules, func(r specs.LinuxSyscall) bool { return len(r.Args) == 0 }) {
		return Program{answer(hit)}, nil
	}
	miss, err := outcome(profile.DefaultAction, profile.DefaultErrnoRet)
	if err != nil {
		return nil, err
	}
	var program Program
	for _, rule := range rules {
		alternative, err := all(rule.Args, hit)
		if err != nil {
			return nil, err
		}
		program = append(program, alternative...)
	}
	return append(program, answer(miss)), nil
}

// all answers hit if every condition holds, and runs on behind its end if not.
func all(conditions []specs.LinuxSeccompArg, hit uint32) (Program, error) {
	if len(conditions) > maxArg+1 {
		return nil, errors.New("more conditions than a call has arguments")
	}
	var steps []step
	for _, c := range conditions {
		compiled, err := compare(c)
		if err != nil {
			return nil, err
		}
		for i := range compiled { // held is the end of this condition
			compiled[i].toHold = len(compiled) - 1 - i
		}
		steps = append(steps, compiled...)
	}
	var program Program
	for i, s := range steps {
		program = append(program, s.resolve(len(steps)-i)) // failed is behind the answer
	}
	return append(program, answer(hit)), nil
}

// target says where a jump of a condition goes.
type target int

const (
	next   target = iota
	held          // to the next condition, or the answer
	failed        // to the next alternative
)

// step is an instruction of a condition, with its jumps not yet counted.
type step struct {
	instruction unix.SockFilter
	yes, no     target
	toHold      int // instructions from here to the condition's end
}

func (s step) resolve(toFail int) unix.SockFilter {
	distance := func(t target) uint8 {
		return map[target]uint8{next: 0, held: uint8(s.toHold), failed: uint8(toFail)}[t]
	}
	resolved := s.instruction
	if resolved.Code&0x07 == unix.BPF_JMP {
		resolved.Jt, resolved.Jf = distance(s.yes), distance(s.no)
	}
	return resolved
}

func plain(i unix.SockFilter) step { return step{instruction: i} }

func branch(test uint16, value uint32, yes, no target) step {
	return step{instruction: jump(test, value, 0, 0), yes: yes, no: no}
}

const maxArg = 5

// compare tests one 64-bit argument, upper half first.
func compare(c specs.LinuxSeccompArg) ([]step, error) {
	if c.Index > maxArg {
		return nil, fmt.Errorf("argument %d: calls have six, from 0", c.Index)
	}
	lower := plain(load(offsetArgs + 8*uint32(c.Index)))
	upper := plain(load(offsetArgs + 8*uint32(c.Index) + 4))
	low, high := uint32(c.Value), uint32(c.Value>>32)
	// An order is decided by the upper half, and by the lower where that is equal.
	switch c.Op {
	case specs.OpEqualTo:
		return []step{upper, branch(unix.BPF_JEQ, high, next, failed), lower, branch(unix.BPF_JEQ, low, next, failed)}, nil
	case specs.OpNotEqual:
		return []step{upper, branch(unix.BPF_JEQ, high, next, held), lower, branch(unix.BPF_JEQ, low, failed, next)}, nil
	case specs.OpGreaterEqual:
		return append(above(upper, high), lower, branch(unix.BPF_JGE, low, next, failed)), nil
	case specs.OpGreaterThan:
		return append(above(upper, high), lower, branch(unix.BPF_JGT, low, next, failed)), nil
	case specs.OpLessThan:
		return append(below(upper, high), lower, branch(unix.BPF_JGE, low, failed, next)), nil
	case specs.OpLessEqual:
		return append(below(upper, high), lower, branch(unix.BPF_JGT, low, failed, next)), nil
	case specs.OpMaskedEqual:
		want, wantHigh := uint32(c.ValueTwo), uint32(c.ValueTwo>>32)
		return []step{upper, plain(mask(high)), branch(unix.BPF_JEQ, wantHigh, next, failed),
			lower, plain(mask(low)), branch(unix.BPF_JEQ, want, next, failed)}, nil
	default:
		return nil, fmt.Errorf("operator %q is not known", c.Op)
	}
}

// above holds for a larger upper half, fails for a smaller, and goes on.
func above(upper step, high uint32) []step {
	return []step{upper, branch(unix.BPF_JGT, high, held, next), branch(unix.BPF_JEQ, high, next, failed)}
}

// below is the other way round.
func below(upper step, high uint32) []step {
	return []step{upper, branch(unix.BPF_JGT, high, failed, next), branch(unix.BPF_JEQ, high, next, held)}
}

func mask(bits uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: bits}
}
