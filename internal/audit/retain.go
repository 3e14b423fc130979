package audit

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// retain removes the oldest segments when there are too many or they are too
// old, and says so in the current one, so that their absence is no gap.
func (l *Log) retain(now time.Time) error {
	names, err := list(l.dir, segmentSuffix)
	if err != nil {
		return err
	}
	old, err := l.beyondLimits(names, now)
	if err != nil || len(old) == 0 {
		return err
	}
	var retired []Head
	for _, name := range old {
		head, err := headOf(l.dir, name)
		if err != nil {
			return err
		}
		if head.State == stateOpen {
			break
		}
		retired = append(retired, head)
	}
	if len(retired) == 0 {
		return nil
	}
	// The record comes first: a crash in between leaves a file too many, not an
	// unexplained gap.
	all := append(l.retiredBefore(names), retired...)
	l.segment.addControl(now, &controlLine{Kind: kindRetire, Retired: all})
	if err := errors.Join(l.segment.write(), l.segment.file.Sync()); err != nil {
		return err
	}
	for _, h := range retired {
		path := filepath.Join(l.dir, h.Segment)
		err = errors.Join(err, os.Remove(path+segmentSuffix), ignoreMissing(os.Remove(path+headSuffix)))
	}
	return err
}

// newSuffix is what a file is called until it is whole, a moment later.
// staleAge is the age from which one counts as left by a killed process.
const (
	newSuffix = ".new"
	staleAge  = time.Hour
)

// removeStale removes what was never part of the log.
func removeStale(dir string, now time.Time) error {
	names, err := list(dir, newSuffix)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name+newSuffix)
		info, err := os.Lstat(path)
		if err != nil || now.Sub(info.ModTime()) < staleAge {
			continue // it has its name now, or will have
		}
		if err := ignoreMissing(os.Remove(path)); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// beyondLimits returns the oldest segments beyond the limits, never the current one.
func (l *Log) beyondLimits(names []string, now time.Time) ([]string, error) {
	var total int64
	kept := len(names)
	for i, name := range slices.Backward(names) {
		info, err := os.Stat(filepath.Join(l.dir, name+segmentSuffix))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		total += info.Size()
		tooMany := total > l.options.KeepSize || len(names)-i > l.options.KeepCount || now.Sub(info.ModTime()) > l.options.KeepAge
		if tooMany && name != l.segment.name {
			break
		}
		kept = i
	}
	return names[:kept], nil
}

// retiredBefore are the segments that retention removed earlier and that first
// lines still name. They are said again, because the segment that said it may
// go. Only what was said is repeated: a segment that was taken away stays missed.
func (l *Log) retiredBefore(names []string) []Head {
	said := map[string]Head{}
	named := map[string]bool{}
	for _, name := range names {
		first, second, err := firstLines(l.dir, name)
		if err != nil {
			continue
		}
		for _, h := range first.Heads {
			named[h.Segment] = true
		}
		for _, h := range second.Retired {
			said[h.Segment] = h
		}
	}
	var again []Head
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if named[name] {
			again = append(again, said[name])
		}
	}
	return again
}
