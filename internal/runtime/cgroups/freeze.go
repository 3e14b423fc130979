package cgroups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Freezer is a group whose processes can be held where they are.
type Freezer struct {
	dir             string
	file, on, off   string
	stateFile, isOn string // where to look, and what it says when every process is held
}

// maxSweeps bounds how often processes are looked for that were started while
// their parents were being held.
const maxSweeps = 200

// How long the kernel may take to stop processes, and after which time it is
// asked anew.
const (
	freezeTimeout = 10 * time.Second
	freezeAgain   = 100 * time.Millisecond
)

// Freezer makes the group, if there is none, in which the processes of a name
// are held: in the hierarchy of the freezer with version 1, else in the one
// group that they have with version 2.
func (h *Host) Freezer(name string) (*Freezer, error) {
	tree := h.controllers["freezer"]
	if tree == nil {
		tree = h.core
	}
	if tree == nil {
		return nil, fmt.Errorf("freezer: %w", errNoController)
	}
	parent, err := tree.parent()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(parent, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if tree.unified {
		return &Freezer{dir: dir, file: "cgroup.freeze", on: "1", off: "0", stateFile: "cgroup.events", isOn: "frozen 1"}, nil
	}
	return &Freezer{dir: dir, file: "freezer.state", on: "FROZEN", off: "THAWED", stateFile: "freezer.state", isOn: "FROZEN"}, nil
}

// Freeze holds a process and all its descendants. Those that are started
// meanwhile are looked for until there is none. On failure they all go on.
func (f *Freezer) Freeze(ctx context.Context, pid int) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Thaw())
		}
	}()
	if err := f.write(f.file, f.on); err != nil {
		return err
	}
	taken := map[string]bool{}
	for range maxSweeps {
		before := len(taken)
		if err := f.addDescendants(pid, taken); err != nil {
			return err
		}
		if len(taken) == before {
			return f.await(ctx)
		}
	}
	return fmt.Errorf("process %d starts others faster than they can be held", pid)
}

// Thaw lets every process go on.
func (f *Freezer) Thaw() error { return f.write(f.file, f.off) }

// addDescendants takes every descendant in that was not taken yet. One that has ended,
// and whose parent is held before it could notice, is seen again and again, and
// never is in the group.
func (f *Freezer) addDescendants(pid int, taken map[string]bool) error {
	for _, member := range descendants(pid) {
		if taken[member] {
			continue
		}
		if err := f.write("cgroup.procs", member); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		taken[member] = true
	}
	return nil
}

// await waits until the kernel has stopped the last of them. With version 1 it
// may miss one that waits for its child while it is taken in, and then never
// looks again: letting all go on and stopping them anew makes it look.
func (f *Freezer) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	again := time.NewTicker(freezeAgain)
	defer again.Stop()
	for !strings.Contains(readLine(filepath.Join(f.dir, f.stateFile)), f.isOn) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("not every process can be held: %w", ctx.Err())
		case <-again.C:
			if err := errors.Join(f.Thaw(), f.write(f.file, f.on)); err != nil {
				return err
			}
		case <-time.After(removeInterval):
		}
	}
	return nil
}

func (f *Freezer) write(file, text string) error {
	if err := os.WriteFile(filepath.Join(f.dir, file), []byte(text), 0); err != nil {
		return fmt.Errorf("freezer: %w", err)
	}
	return nil
}

// descendants are a process and all that come from it.
func descendants(pid int) []string {
	all := []string{strconv.Itoa(pid)}
	for i := 0; i < len(all); i++ {
		threads, err := os.ReadDir("/proc/" + all[i] + "/task")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, thread := range threads {
			all = append(all, strings.Fields(readLine("/proc/"+all[i]+"/task/"+thread.Name()+"/children"))...)
		}
	}
	return all
}
