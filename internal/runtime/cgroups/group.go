package cgroups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Group is a set of processes with limits: a directory in each hierarchy whose
// controllers are needed.
type Group struct {
	Dirs []Dir
	Kept []Kept // the limits that were set
}

// Dir is one directory of a group.
type Dir struct {
	Controller string // "" with version 2
	Path       string
}

// Make makes a group and sets its limits. On failure nothing is left.
func (h *Host) Make(name string, l Limits) (_ *Group, err error) {
	g := &Group{}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.rmdir())
		}
	}()
	list := h.settings(l)
	var dirs []string
	for _, s := range list {
		dir, err := h.dirFor(g, name, s.controller)
		if err != nil {
			return nil, fmt.Errorf("limit of %s: %w", s.limit, err)
		}
		if err := write(dir, s); err != nil {
			return nil, fmt.Errorf("limit of %s: %w", s.limit, err)
		}
		dirs = append(dirs, dir)
	}
	g.kept(list, dirs)
	return g, nil
}

// write sets a limit. That of swap may have no file where there is no swap, and
// that of sockets in a kernel that was built without it.
func write(dir string, s setting) error {
	file := filepath.Join(dir, s.file)
	err := os.WriteFile(file, []byte(s.value), 0)
	if _, missing := os.Lstat(file); s.limit == Sockets && errors.Is(missing, fs.ErrNotExist) {
		return nil
	}
	if s.limit == Swap && !hasSwap() && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return nil
	}
	return err
}

// dirFor makes the group's directory in a controller's hierarchy.
func (h *Host) dirFor(g *Group, name, controller string) (string, error) {
	tree := h.controllers[controller]
	if tree == nil {
		return "", errNoController
	}
	parent, err := tree.enable(controller)
	if err != nil {
		return "", err
	}
	path := filepath.Join(parent, name)
	for _, made := range g.Dirs {
		if made.Path == path {
			return path, nil
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return "", err
	}
	dir := Dir{Controller: controller, Path: path}
	if tree.unified {
		dir.Controller = ""
	}
	g.Dirs = append(g.Dirs, dir)
	return path, nil
}

// Existing finds the group of a name that an earlier process made.
func (h *Host) Existing(name string) *Group {
	g := &Group{}
	seen := map[string]bool{}
	trees := maps.Clone(h.controllers)
	if h.core != nil {
		trees[""] = h.core
	}
	for controller, tree := range trees {
		parent, err := tree.parent()
		if err != nil {
			continue
		}
		path := filepath.Join(parent, name)
		if _, err := os.Stat(path); err != nil || seen[path] {
			continue
		}
		seen[path] = true
		if tree.unified {
			controller = ""
		}
		g.Dirs = append(g.Dirs, Dir{Controller: controller, Path: path})
	}
	return g
}

// Entrances opens the files that add to the group a process with one thread
// which writes 0 to each. With version 1 that is "tasks": a thread that asks for
// itself is moved at once, while a process that is named in "cgroup.procs" is
// moved after an RCU grace period, about ten milliseconds.
func (g *Group) Entrances() (files []*os.File, err error) {
	for _, dir := range g.Dirs {
		name := "cgroup.procs"
		if dir.Controller != "" {
			name = "tasks"
		}
		file, err := os.OpenFile(filepath.Join(dir.Path, name), os.O_WRONLY, 0)
		if err != nil {
			return files, fmt.Errorf("control group: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

// removeInterval is how long to wait for processes that are still ending.
const removeInterval = 2 * time.Millisecond

// Remove takes the group away. Its processes must have been killed; those that
// have not quite ended are waited for.
func (g *Group) Remove(ctx context.Context) error {
	for {
		err := g.rmdir()
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(removeInterval):
		}
	}
}

func (g *Group) rmdir() (err error) {
	for _, dir := range g.Dirs {
		if e := unix.Rmdir(dir.Path); e != nil && e != unix.ENOENT {
			err = errors.Join(err, fmt.Errorf("control group %s: %w", dir.Path, e))
		}
	}
	return err
}
