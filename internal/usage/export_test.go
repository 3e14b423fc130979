package usage

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// QuickWrite writes as the journal does, told to the scheduler or not.
func QuickWrite(f *os.File, b []byte, at int64, announced bool) error {
	var q quick
	if announced {
		q.announced = time.Now().Add(time.Hour)
	}
	return q.writeAt(f, b, at)
}

// QuickLock locks as the journal does.
func QuickLock(f *os.File) error {
	return new(quick).lock(f, &unix.Flock_t{Type: unix.F_WRLCK, Len: 1})
}

// QuickSize is the size of a file as the journal sees it.
func QuickSize(f *os.File) (int64, error) {
	var facts unix.Stat_t
	err := new(quick).stat(f, &facts)
	return facts.Size, err
}

// RotateAt sets the size at which a ledger replaces the journal.
func RotateAt(l *Ledger, size int64) { l.rotateAt = size }

// Generation is which journal a ledger has open.
func Generation(l *Ledger) int64 { return l.journal.head.generation }

// ReadAll reads records of hostile bytes, for fuzzing.
func ReadAll(b []byte) (records, used int) {
	var r record
	for {
		n, err := next(b[used:], &r)
		if err != nil {
			return records, used
		}
		records++
		used += n
		if again := r.appendTo(nil); len(again) > 2*n+64 {
			panic("a record grew")
		}
	}
}

// Sample is two whole records.
func Sample() []byte {
	r := record{Kind: kindSettle, ID: "a", Owner: "o", Subject: Subject{"r", "s", "a", "c"}, Day: "d", MicroUSD: -5, Tokens: Tokens{Input: 1 << 40}}
	return r.appendTo(r.appendTo(nil))
}
