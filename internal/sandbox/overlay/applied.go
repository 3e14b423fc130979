package overlay

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// compactAbove is the size from which the file of the notes is written anew with the
// last line of each path, if at most half of it counts. It never has more than the
// larger of this and twice what counts, and the lines of one call.
const compactAbove = 1 << 20

// readApplied returns the last line of each path.
func readApplied(name string) (map[string]appliedLine, error) {
	found, _, err := scanApplied(name)
	return found, err
}

// scanApplied returns the last line of each path, and how many bytes these lines
// have. A line that was not written whole, because the host went down or the disk was
// full, does not count: then what was noted before does, and the base is not as it was.
func scanApplied(name string) (found map[string]appliedLine, live int64, err error) {
	found = map[string]appliedLine{}
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return found, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	sizes := map[string]int64{}
	for lines := bufio.NewReader(file); ; {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return found, live, nil
		} else if err != nil {
			return nil, 0, err
		}
		var line appliedLine
		if err := json.Unmarshal(text, &line); err == nil {
			at := string(line.Path)
			live += int64(len(text)) - sizes[at]
			found[at], sizes[at] = line, int64(len(text))
		}
	}
}

// appendApplied adds lines to the file, from which they are read when they are
// needed. Live is how many bytes of it counted before.
func (t *Tree) appendApplied(lines []appliedLine, live int64, durable bool) error {
	text, err := appliedText(lines)
	if err != nil {
		return err
	}
	name := filepath.Join(t.Dir, appliedName)
	file, err := lockApplied(name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append([]byte{'\n'}, text...)) // ends a line that was not written whole
	if err == nil && durable {
		err = file.Sync()
	}
	if err != nil {
		return err
	}
	if info, err := file.Stat(); err == nil && info.Size() > max(compactAbove, 2*(live+int64(len(text)))) {
		_ = compactApplied(name) // the lines are there: the next call tries again
	}
	return nil
}

func appliedText(lines []appliedLine) (text []byte, err error) {
	for _, line := range lines {
		one, err := json.Marshal(line)
		if err != nil {
			return nil, err
		}
		text = append(append(text, one...), '\n')
	}
	return text, nil
}

// lockApplied opens the file for appending, with its lock until it is closed, so that
// no line is added to a file that another process is replacing.
func lockApplied(name string) (*os.File, error) {
	for {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		held, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if now, err := os.Lstat(name); err == nil && os.SameFile(held, now) {
			return file, nil
		}
		closeFile(file) // it was replaced while the lock was waited for
	}
}

func flock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("flock", err)
		}
	}
}

// compactApplied replaces the file by one with the last line of each path. The caller
// holds its lock.
func compactApplied(name string) error {
	found, _, err := scanApplied(name)
	if err != nil {
		return err
	}
	lines := make([]appliedLine, 0, len(found))
	for _, at := range slices.Sorted(maps.Keys(found)) {
		lines = append(lines, found[at])
	}
	text, err := appliedText(lines)
	if err != nil {
		return err
	}
	fresh := name + ".new"
	file, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(fresh, name)
	}
	return err
}
