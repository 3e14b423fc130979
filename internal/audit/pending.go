package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	pendingFile = "pending"
	// maxPending is the size from which the process that adds to the pending
	// records puts them into the log itself.
	maxPending = 1 << 20
)

// AppendPending keeps an event beside the log in dir, for the next writer to put
// into it. It costs one write: a segment for each short process would be slow, and
// push older segments out. Until then the record is neither synced nor chained.
func AppendPending(dir string, e Event) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	size, err := writePending(filepath.Join(dir, pendingFile), append(appendEvent(nil, e, nil), '\n'))
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	if size < maxPending {
		return nil
	}
	log, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	return log.Close()
}

// writePending appends a line, and returns how long the file is then. Its lock is
// shared with other processes that append.
func writePending(path string, line []byte) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: unix.F_RDLCK}); err != nil {
		return 0, err
	}
	if _, err := f.Write(line); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// hasPending reports whether records wait beside the log.
func (l *Log) hasPending() bool {
	info, err := os.Lstat(filepath.Join(l.dir, pendingFile))
	return err == nil && info.Size() > 0
}

// takePending puts the pending records into the segment. After a crash in between
// they are there twice.
func (l *Log) takePending() (err error) {
	f, err := os.OpenFile(filepath.Join(l.dir, pendingFile), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}) != nil {
		return nil // another process writes to it: next time
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*maxPending))
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.addBatch(wholeRecords(text), l.options.Now())
	return errors.Join(l.segment.write(), l.segment.file.Sync(), f.Truncate(0))
}

// wholeRecords returns the lines that are whole records: a process that died may
// have left a part of one.
func wholeRecords(text []byte) []byte {
	var whole []byte
	for line := range bytes.Lines(text) {
		body := bytes.TrimSuffix(line, []byte{'\n'})
		if len(body) < len(line) && len(body) > 0 && body[0] == '{' && json.Valid(body) && !isControlLine(body) {
			whole = append(whole, line...)
		}
	}
	return whole
}

// pendingEntries returns the pending records that match, for Tail.
func pendingEntries(dir string, match func(string) bool) (list []Entry) {
	text, err := os.ReadFile(filepath.Join(dir, pendingFile))
	if err != nil {
		return nil // there are none
	}
	number := int64(0)
	for line := range bytes.Lines(wholeRecords(text[:min(len(text), 2*maxPending)])) {
		number++
		if body := string(bytes.TrimSuffix(line, []byte{'\n'})); match == nil || match(body) {
			list = append(list, Entry{pendingFile, number, body})
		}
	}
	return list
}
