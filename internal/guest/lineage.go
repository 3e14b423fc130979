package guest

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"golang.org/x/sys/unix"
)

// lineage knows which processes descend from which exec, whatever they do to
// hide it. Process groups and sessions do not: one setsid leaves both. Parents
// do not: a double fork is adopted by process 1. A supervisor per exec does
// not: its own descendants can kill it. Control groups and pid namespaces would,
// but need privileges that a sandbox has not.
//
// So every exec gets a number n, and its process starts with two hard resource
// limits that spell it: one counts up with n, the other down. Both are inherited
// over fork and exec, and without a capability a hard limit can only be lowered.
// To pass for exec m, a process of exec n would have to raise the first limit if
// m > n, the second if m < n: it cannot. It can lower them to something that
// spells no exec; then they still bound the truth, first ≤ n ≤ second, and it
// goes down with every exec that it may belong to.
//
// The two limits are ones that mean nothing here: the kernel has not looked at
// RLIMIT_LOCKS since 2.4, and RLIMIT_RTTIME concerns real-time scheduling, which
// needs a capability (and the values used are days, not microseconds).
//
// A guest may run inside a guest, as the tools of an agent in a sandbox do. What
// the inner one starts must still spell the exec of the outer one that the inner
// one belongs to, so the outer one's numbers are a stride apart, and the inner
// one's lie between two of them.
type lineage struct {
	up, down     uint64 // the guest's own hard limits, capped
	stride, most uint64 // distance of two numbers, and how many there are
	last         atomic.Uint64
}

const (
	limitUp   = unix.RLIMIT_LOCKS
	limitDown = unix.RLIMIT_RTTIME
	// marks is how many execs a guest can tell apart in its life, innerMarks how
	// many one inside it can. One inside both has marks of its own again, but the
	// outermost cannot tell which of its execs they belong to.
	marks      = 1 << 32
	innerMarks = 1 << 28
	// unlimited stands for a limit that is not set, leaving room for guests
	// inside guests, whose own limits are those of an exec.
	unlimited = 1 << 62
)

var errNoMarks = errors.New("the ulimits locks and rttime are set: leave them unset, Atoll tells processes apart by them")

func newLineage() (*lineage, error) {
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
func lineageOf(up, down uint64) *lineage {
	l := &lineage{up: min(up, unlimited), down: min(down, unlimited), stride: 1, most: marks}
	switch {
	case l.up == unlimited && l.down == unlimited:
		l.stride = innerMarks
	case l.up%innerMarks == 0 && l.down%innerMarks == 0:
		l.most = innerMarks
	}
	return l
}

func (l *lineage) check() error {
	if span := l.most * l.stride; l.up <= 2*span || l.down <= 2*span {
		return errNoMarks
	}
	return nil
}

// mark is the number of one exec, from 1.
type mark uint64

func (l *lineage) next() mark { return mark(l.last.Add(1)) }

// reserve takes n marks that follow each other.
func (l *lineage) reserve(n uint64) block {
	last := mark(l.last.Add(n))
	return block{last - mark(n) + 1, last}
}

// block is the marks from first to last.
type block struct{ first, last mark }

// execSet is the execs that something concerns.
type execSet []block

func oneExec(m mark) execSet { return execSet{{m, m}} }

// with is the kin and one more block, which lies behind all of its own.
func (k execSet) with(b block) execSet {
	if n := len(k); n > 0 && k[n-1].last+1 == b.first {
		k[n-1].last = b.last
		return k
	}
	return append(k, b)
}

// mayContain reports whether one that belongs to an exec from lowest to highest may
// belong to the kin.
func (k execSet) mayContain(lowest, highest mark) bool {
	return slices.ContainsFunc(k, func(b block) bool { return lowest <= b.last && b.first <= highest })
}

// limits spell m.
func (l *lineage) limits(m mark) []spawn.Limit {
	up, down := l.base()+uint64(m)*l.stride, l.down-uint64(m)*l.stride
	return []spawn.Limit{
		{Resource: limitUp, Soft: up, Hard: up},
		{Resource: limitDown, Soft: down, Hard: down},
	}
}

// marksOf returns the lowest and the highest exec that pid may belong to: the
// same one, unless it hides that. For a process that no exec started, as the
// guest itself, the lowest is above the highest.
func (l *lineage) marksOf(pid int) (lowest, highest mark, ok bool) {
	up, err := hardLimit(pid, limitUp)
	if err != nil {
		return 0, 0, false // gone
	}
	down, err := hardLimit(pid, limitDown)
	if err != nil {
		return 0, 0, false
	}
	lowest, highest = l.spelt(up, down)
	return lowest, highest, true
}

// spelt is what two limits spell. What lies between two numbers is a guest's
// inside the exec.
func (l *lineage) spelt(up, down uint64) (lowest, highest mark) {
	if base := l.base(); up > base {
		lowest = mark((up-base-1)/l.stride + 1)
	}
	if down < l.down {
		highest = mark((l.down - down) / l.stride)
	}
	return lowest, highest
}

// base is what the first limit counts from.
func (l *lineage) base() uint64 { return l.up - l.most*l.stride }

func hardLimit(pid, resource int) (uint64, error) {
	var limit unix.Rlimit
	err := unix.Prlimit(pid, resource, nil, &limit)
	return limit.Max, err
}
