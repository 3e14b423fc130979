package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kept is a limit as the kernel took it, so that a later look can tell whether
// it is still in force: another program on the host may have changed the control
// group, or moved processes out.
type Kept struct {
	Limit Limit
	File  string
	Value string
}

// kept reads back what the settings became. The kernel rounds, and has its own
// way of writing.
func (g *Group) kept(list []setting, dirs []string) {
	for n, s := range list {
		file := filepath.Join(dirs[n], s.file)
		text, err := os.ReadFile(file)
		if err != nil || slices.ContainsFunc(g.Kept, func(k Kept) bool { return k.File == file }) {
			continue // there is no swap, or the file is that of several
		}
		g.Kept = append(g.Kept, Kept{s.limit, file, strings.TrimSpace(string(text))})
	}
}

// Lost returns which limits of a process are not in force any more.
func Lost(kept []Kept, pid int) error {
	var lost []error
	for _, k := range kept {
		lost = append(lost, k.lost())
	}
	if err := errors.Join(lost...); err != nil {
		return err
	}
	for _, k := range kept {
		if !holds(filepath.Dir(k.File), pid) {
			return fmt.Errorf("limit of %s: process %d is no longer in control group %s", k.Limit, pid, filepath.Dir(k.File))
		}
	}
	return nil
}

func (k Kept) lost() error {
	text, err := os.ReadFile(k.File)
	now := strings.TrimSpace(string(text))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("limit of %s: %s is gone", k.Limit, k.File)
	case err != nil:
		return fmt.Errorf("limit of %s: %w", k.Limit, err)
	case now != k.Value:
		return fmt.Errorf("limit of %s: %s is %q, was %q", k.Limit, k.File, now, k.Value)
	}
	return nil
}

// holds reports whether a process is in the group of a directory.
func holds(dir string, pid int) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	return err == nil && slices.Contains(strings.Fields(string(text)), strconv.Itoa(pid))
}
