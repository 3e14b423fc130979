package rootfs

import (
	"fmt"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// stamps are the times of directories. They are set last, because every entry
// that is made in a directory changes its time.
type stamps struct {
	all  []stamp
	room int64 // bytes that they may still take of our memory
}

type stamp struct {
	path string
	time time.Time
}

// stampSize is about what a stamp takes beside its path.
const stampSize = 64

func (s *stamps) add(path string, at time.Time) error {
	if s.room -= int64(len(path)) + stampSize; s.room < 0 {
		return fmt.Errorf("%w: names of directories to remember", ErrTooMuch)
	}
	s.all = append(s.all, stamp{path, at})
	return nil
}

func (s *stamps) set(t *tree) error {
	for _, one := range s.all {
		if err := t.stamp(one.path, one.time); err != nil {
			return fmt.Errorf("%.200q: %w", one.path, err)
		}
	}
	return nil
}

// stamp sets the time of a directory, unless something else has its name by now.
func (t *tree) stamp(name string, mtime time.Time) error {
	dir, err := hostpath.OpenBeneath(t.root, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer dir.Close()
	return setTime(int(dir.Fd()), ".", mtime)
}

// touch sets the time of what was just made.
func (t *tree) touch(name string, mtime time.Time) error {
	parent, err := t.dirOf(name)
	if err != nil {
		return err
	}
	return setTime(parent, path.Base(name), mtime)
}

// setTime sets the time of a name in a directory.
func setTime(parent int, leaf string, mtime time.Time) error {
	when := unix.Timespec{Sec: within(mtime)}
	return unix.UtimesNanoAt(parent, leaf, []unix.Timespec{when, when}, unix.AT_SYMLINK_NOFOLLOW)
}

// within keeps a time within what a file system can hold.
func within(t time.Time) int64 {
	const latest = 1<<34 - 1 // ext4 ends here, in the year 2446
	return min(max(t.Unix(), 0), latest)
}
