// Package blockdev finds the disk that a file is on, so that what is read from
// it and written to it can be limited.
package blockdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Disk is a block device with a queue of its own: a whole disk, not a part.
type Disk struct {
	Major, Minor uint32
	Name         string // as in /dev
}

// String is the disk as control groups call it.
func (d Disk) String() string { return fmt.Sprintf("%d:%d", d.Major, d.Minor) }

// Path is the disk's file.
func (d Disk) Path() string { return "/dev/" + d.Name }

// ErrNone is a file that is on no disk of this machine: in memory, on the
// network, or spread over several.
var ErrNone = errors.New("is on no disk of this machine")

// Finder finds disks. The zero Finder looks at this machine.
type Finder struct{ Sys string } // where sysfs is; "" is /sys

// Of finds the disk of a file or directory.
func (f Finder) Of(path string) (Disk, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Disk{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	d, err := f.disk(unix.Major(st.Dev), unix.Minor(st.Dev))
	if err != nil {
		return Disk{}, fmt.Errorf("%s %w", path, err)
	}
	return d, nil
}

// All finds the disks of several files, each once. Those in must have one; those
// in may need none.
func (f Finder) All(must, may []string) ([]Disk, error) {
	var disks []Disk
	for n, path := range slices.Concat(must, may) {
		d, err := f.Of(path)
		if n >= len(must) && errors.Is(err, ErrNone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(disks, d) {
			disks = append(disks, d)
		}
	}
	return disks, nil
}

func (f Finder) dir(major, minor uint32) string {
	sys := f.Sys
	if sys == "" {
		sys = "/sys"
	}
	return filepath.Join(sys, "dev/block", fmt.Sprintf("%d:%d", major, minor))
}

// disk goes from a part to the whole, which is what has a queue.
func (f Finder) disk(major, minor uint32) (Disk, error) {
	dir, err := filepath.EvalSymlinks(f.dir(major, minor))
	if err != nil {
		return Disk{}, ErrNone
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		dir = filepath.Dir(dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "queue")); err != nil {
		return Disk{}, ErrNone
	}
	return named(dir)
}

func named(dir string) (Disk, error) {
	text, err := os.ReadFile(filepath.Join(dir, "dev"))
	if err != nil {
		return Disk{}, ErrNone
	}
	first, second, _ := strings.Cut(strings.TrimSpace(string(text)), ":")
	major, err1 := strconv.ParseUint(first, 10, 32)
	minor, err2 := strconv.ParseUint(second, 10, 32)
	if errors.Join(err1, err2) != nil {
		return Disk{}, ErrNone
	}
	// Sysfs writes a slash in a name as an exclamation mark.
	return Disk{uint32(major), uint32(minor), strings.ReplaceAll(filepath.Base(dir), "!", "/")}, nil
}

// Scheduler is what orders the requests of a disk, "" if that is not known.
func (f Finder) Scheduler(d Disk) string {
	text, _ := os.ReadFile(filepath.Join(f.dir(d.Major, d.Minor), "queue/scheduler"))
	_, after, _ := strings.Cut(string(text), "[")
	name, _, _ := strings.Cut(after, "]")
	return name
}
