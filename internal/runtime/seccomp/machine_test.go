package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// call is what a filter sees of a system call (struct seccomp_data).
type call struct {
	number, arch uint32
	args         [6]uint64
}

func (c *call) word(offset uint32) uint32 {
	switch offset {
	case offsetNumber:
		return c.number
	case offsetArch:
		return c.arch
	default:
		half := (offset - offsetArgs) / 4 // lower, upper, lower, …
		return uint32(c.args[half/2] >> (32 * (half % 2)))
	}
}

// interpret runs a program as the kernel does and returns its answer.
func interpret(t *testing.T, p Program, c *call) uint32 {
	t.Helper()
	var a uint32
	for pc := 0; pc < len(p); pc++ {
		i := p[pc]
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = c.word(i.K)
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= i.K
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(i.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			pc += distance(a == i.K, i)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			pc += distance(a >= i.K, i)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			pc += distance(a > i.K, i)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			pc += distance(a&i.K != 0, i)
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		default:
			t.Fatalf("instruction %d has code %#x", pc, i.Code)
		}
	}
	t.Fatal("the program ran off its end")
	return 0
}

func distance(yes bool, i unix.SockFilter) int {
	if yes {
		return int(i.Jt)
	}
	return int(i.Jf)
}
