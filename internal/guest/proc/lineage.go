package proc

import (
	"errors"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/spawn"
)

// Lineage tells which processes descend from which exec, even if they try to hide
// it. Process groups and sessions do not tell: one setsid leaves both. Parents do
// not: process 1 adopts the child of a double fork. A supervisor per exec does not:
// its own descendants can kill it. Control groups and pid namespaces would, but need
// privileges that a sandbox does not have.
//
// So every exec gets a number n, and its process starts with two hard resource
// limits that encode it: one counts up with n, the other down. Both are inherited
// over fork and exec, and without a capability a hard limit can only be lowered.
// To pass for exec m, a process of exec n would have to raise the first limit if
// m > n, the second if m < n: it cannot. It can lower them to values that encode no
// exec; then they still bound the number, first ≤ n ≤ second, and the process is
// ended with every exec that it may belong to.
//
// The two limits have no effect here: the kernel has not used RLIMIT_LOCKS since 2.4,
// and RLIMIT_RTTIME concerns real-time scheduling, which needs a capability (and the
// values used are days, not microseconds).
//
// A guest may run inside a guest, as the tools of an agent in a sandbox do. The
// processes that the inner one starts must still encode the exec of the outer one
// that the inner one belongs to, so the outer one's numbers are a stride apart, and
// the inner one's lie between two of them.
type Lineage struct {
	up, down     uint64 // the guest's own hard limits, capped
	stride, most uint64 // distance of two numbers, and how many there are
	last         atomic.Uint64
}

const (
	limitUp   = unix.RLIMIT_LOCKS
	limitDown = unix.RLIMIT_RTTIME
	// marks is how many execs a guest can tell apart in its life, innerMarks how
	// many a guest inside it can. A guest inside both has marks of its own again, but
	// the outermost cannot tell which of its execs they belong to.
	marks      = 1 << 32
	innerMarks = 1 << 28
	// unlimited stands for a limit that is not set, leaving room for guests
	// inside guests, whose own limits are those of an exec.
	unlimited = 1 << 62
)

var errNoMarks = errors.New("the ulimits locks and rttime are set: leave them unset, Atoll tells processes apart by them")

// NewLineage returns the lineage of this process, or fails if its limits leave no room
// for marks.
func NewLineage() (*Lineage, error) {
	up, err := hardLimit(0, limitUp)
	if err != nil {
		return nil, err
	}
	down, err := hardLimit(0, limitDown)
	if err != nil {
		return nil, err
	}
	l := lineageOf(up, down)
	return l, l.check()
}

// lineageOf is the lineage of a guest with these hard limits.
func lineageOf(up, down uint64) *Lineage {
	l := &Lineage{up: min(up, unlimited), down: min(down, unlimited), stride: 1, most: marks}
	switch {
	case l.up == unlimited && l.down == unlimited:
		l.stride = innerMarks
	case l.up%innerMarks == 0 && l.down%innerMarks == 0:
		l.most = innerMarks
	}
	return l
}

func (l *Lineage) check() error {
	if span := l.most * l.stride; l.up <= 2*span || l.down <= 2*span {
		return errNoMarks
	}
	return nil
}

// Mark is the number of one exec, from 1.
type Mark uint64

// Next takes the next mark.
func (l *Lineage) Next() Mark { return Mark(l.last.Add(1)) }

// Reserve takes n consecutive marks.
func (l *Lineage) Reserve(n uint64) MarkRange {
	last := Mark(l.last.Add(n))
	return MarkRange{last - Mark(n) + 1, last}
}

// MarkRange is the marks from First to Last.
type MarkRange struct{ First, Last Mark }

// ExecSet is a set of execs, as ascending ranges of their marks.
type ExecSet []MarkRange

// OneExec returns the set of one exec.
func OneExec(m Mark) ExecSet { return ExecSet{{m, m}} }

// With returns the set with one more range, whose marks are above all of its own.
func (s ExecSet) With(b MarkRange) ExecSet {
	if n := len(s); n > 0 && s[n-1].Last+1 == b.First {
		s[n-1].Last = b.Last
		return s
	}
	return append(s, b)
}

// MayContain reports whether a process that belongs to an exec from lowest to highest
// may belong to one of the set.
func (s ExecSet) MayContain(lowest, highest Mark) bool {
	return slices.ContainsFunc(s, func(b MarkRange) bool { return lowest <= b.Last && b.First <= highest })
}

// Limits returns the resource limits that encode m.
func (l *Lineage) Limits(m Mark) []spawn.Limit {
	up, down := l.base()+uint64(m)*l.stride, l.down-uint64(m)*l.stride
	return []spawn.Limit{
		{Resource: limitUp, Soft: up, Hard: up},
		{Resource: limitDown, Soft: down, Hard: down},
	}
}

// MarksOf returns the lowest and the highest exec that pid may belong to: the
// same one, unless it lowered its limits. For a process that no exec started, as the
// guest itself, the lowest is above the highest.
func (l *Lineage) MarksOf(pid int) (lowest, highest Mark, ok bool) {
	up, err := hardLimit(pid, limitUp)
	if err != nil {
		return 0, 0, false // gone
	}
	down, err := hardLimit(pid, limitDown)
	if err != nil {
		return 0, 0, false
	}
	lowest, highest = l.decode(up, down)
	return lowest, highest, true
}

// decode returns the range of marks that two limits allow. Values between two numbers
// are marks of a guest inside the exec.
func (l *Lineage) decode(up, down uint64) (lowest, highest Mark) {
	if base := l.base(); up > base {
		lowest = Mark((up-base-1)/l.stride + 1)
	}
	if down < l.down {
		highest = Mark((l.down - down) / l.stride)
	}
	return lowest, highest
}

// base is the value from which the first limit counts.
func (l *Lineage) base() uint64 { return l.up - l.most*l.stride }

func hardLimit(pid, resource int) (uint64, error) {
	var limit unix.Rlimit
	err := unix.Prlimit(pid, resource, nil, &limit)
	return limit.Max, err
}
