// Package entry is the way into a container that runs: what its record tells
// somebody who only wants to run a command there, how to make sure of the guest,
// and how what a command line says of names and variables is read.
//
// Nothing here but Format takes anything from the heap, or relies on variables:
// package headstart calls it where neither exists yet. So a failure is a bool.
package entry

import "strings"

// Where things are in a state directory: records by names, and links from ids to
// names beside them.
const (
	RecordsDir = "containers"
	IDsDir     = "ids"
	RecordKind = ".json"
	LeasesFile = "leases"
)

// Entry is what it takes to run a command in a container while that runs, in
// words. A record begins with it, as a number of bytes and as many bytes of
// fields, because to read a whole record as JSON takes a small program longer than
// all else that it does for a short command.
type Entry struct {
	ID, Name, Hostname, Workdir, User, Home string

	Process  string // the guest's name for the main command
	Attached string // Yes: the main command belongs to a `run` that waits for it

	Socket string // of the guest; "": it does not run
	PID    string
	Birth  string
	Lease  string // to share while the sandbox is used
	Place  string // of the lease in its book
	Paused string // Yes: the guest would not answer

	Env string // variables, each but the last with an End
}

// Yes is a field that is true.
const Yes = "true"

// End separates fields, and variables.
const End = "\x00"

const (
	mark = "entry/2 "
	// oldMark begins an entry without a place. The record behind it tells all.
	oldMark = "entry "
)

// each are the fields in their order.
func (e *Entry) each() [15]*string {
	return [...]*string{
		&e.ID, &e.Name, &e.Hostname, &e.Workdir, &e.User, &e.Home, &e.Process, &e.Attached,
		&e.Socket, &e.PID, &e.Birth, &e.Lease, &e.Place, &e.Paused, &e.Env,
	}
}

// Cut takes a record apart. The entry is "" if there is none; ok is false if it is
// malformed.
func Cut(record string) (entry, rest string, ok bool) {
	sized, isNew := strings.CutPrefix(record, mark)
	if !isNew {
		if sized, ok = strings.CutPrefix(record, oldMark); !ok {
			return "", record, true
		}
	}
	size, rest, _ := strings.Cut(sized, "\n")
	n, ok := Number(size)
	if !ok || n > int64(len(rest)) {
		return "", "", false
	}
	if !isNew {
		return "", rest[n:], true
	}
	return rest[:n], rest[n:], true
}

// Parse reads an entry.
func Parse(entry string) (e Entry, ok bool) {
	fields := e.each()
	last := len(fields) - 1
	for _, field := range fields[:last] {
		if *field, entry, ok = strings.Cut(entry, End); !ok {
			return e, false
		}
	}
	*fields[last] = entry
	return e, true
}

// Number reads a number without a sign.
func Number(digits string) (n int64, ok bool) {
	const most = 18
	if digits == "" || len(digits) > most+1 {
		return 0, false
	}
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || '9' < c || i >= most && n > (1<<63-1)/10-1 {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}
