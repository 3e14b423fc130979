package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Entry is one record as it is stored.
type Entry struct {
	Segment string
	Line    int64
	JSON    string
}

// Tail returns the last n records of all segments that match, in the order of
// time. It does not verify.
func Tail(dir string, n int, match func(json string) bool) ([]Entry, error) {
	names, err := list(dir, segmentSuffix)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	last := pendingEntries(dir, match)
	for _, name := range slices.Backward(names) {
		entries, err := records(dir, name, n, match)
		if err != nil {
			return nil, err
		}
		last = append(last, entries...)
		if len(last) >= 4*n { // segments overlap in time, but not for long
			break
		}
	}
	slices.SortStableFunc(last, func(a, b Entry) int { return strings.Compare(a.time(), b.time()) })
	return last[max(len(last)-n, 0):], nil
}

// time is the beginning of a record, which is its time.
func (e Entry) time() string {
	return e.JSON[:min(len(e.JSON), len(`{"time":"2006-01-02T15:04:05.000Z`))]
}

// records are the last n of one segment that match.
func records(dir, name string, n int, match func(string) bool) ([]Entry, error) {
	f, err := os.Open(filepath.Join(dir, name+segmentSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	var last []Entry
	for lines := bufio.NewReaderSize(f, 256<<10); ; {
		text, err := readLine(lines)
		if err != nil {
			return last, nil
		}
		l, ok := parseLine(text)
		if !ok || isControlLine(l.body) || match != nil && !match(string(l.body)) {
			continue
		}
		if last = append(last, Entry{name, l.number, string(l.body)}); len(last) > 2*n {
			last = slices.Clone(last[len(last)-n:])
		}
	}
}
