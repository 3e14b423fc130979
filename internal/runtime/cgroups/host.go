package cgroups

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath/blockdev"
)

// parentName is the directory below which all our groups are.
const parentName = "atoll"

// hierarchy is one tree of groups.
type hierarchy struct {
	unified bool   // version 2
	mount   string // where it is mounted
	own     string // this process's group in it, as a path below mount
}

// Host describes the control groups that the caller can use on this machine.
type Host struct {
	controllers map[string]*hierarchy
	core        *hierarchy // of version 2, which can hold processes without any controller
	disks       blockdev.Finder
}

// Find reads which control groups this machine has.
func Find() (*Host, error) { return find("/proc/self/mountinfo", "/proc/self/cgroup") }

func find(mountinfo, own string) (*Host, error) {
	h := &Host{controllers: map[string]*hierarchy{}}
	groups, err := ownGroups(own)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil // a kernel without control groups
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(mountinfo)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		h.addMount(lines.Text(), groups)
	}
	return h, lines.Err()
}

// ownGroups reads the groups of this process, by controller; "" is version 2.
func ownGroups(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	groups := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for name := range strings.SplitSeq(fields[1], ",") {
			groups[name] = fields[2]
		}
	}
	return groups, nil
}

// addMount takes in one line of mountinfo if it is about control groups:
//
//	36 35 98:0 /root /mount options - type source superoptions
func (h *Host) addMount(line string, groups map[string]string) {
	before, after, ok := strings.Cut(line, " - ")
	place, about := strings.Fields(before), strings.Fields(after)
	if !ok || len(place) < 5 || len(about) < 3 {
		return
	}
	root, mount := place[3], place[4]
	switch about[0] {
	case "cgroup2":
		tree := &hierarchy{unified: true, mount: mount, own: below(root, groups[""])}
		if h.core == nil {
			h.core = tree
		}
		for name := range strings.FieldsSeq(readLine(filepath.Join(mount, "cgroup.controllers"))) {
			h.add(name, tree)
		}
	case "cgroup":
		for name := range strings.SplitSeq(about[2], ",") {
			if group, ok := groups[name]; ok {
				h.add(name, &hierarchy{mount: mount, own: below(root, group)})
			}
		}
	}
}

func (h *Host) add(name string, tree *hierarchy) {
	if h.controllers[name] == nil {
		h.controllers[name] = tree
	}
}

// below is a group as seen from a mount that shows the tree from root on.
func below(root, group string) string {
	if root == "/" {
		return group
	}
	inside, ok := strings.CutPrefix(group, root)
	if !ok || inside == "" {
		return "/"
	}
	return inside
}

func readLine(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}

// parent is the directory in which groups of ours are made.
func (t *hierarchy) parent() (string, error) {
	if os.Geteuid() == 0 {
		return filepath.Join(t.mount, parentName), nil
	}
	dir := t.mount + t.own
	if !t.unified {
		if unix.Access(dir, unix.W_OK) != nil {
			return "", errNotDelegated
		}
		return filepath.Join(dir, parentName), nil
	}
	return t.delegated(dir)
}

// delegated is the uppermost group around dir that the caller may manage.
// Version 2 has processes in leaves only, so dir itself rarely will do.
func (t *hierarchy) delegated(dir string) (found string, err error) {
	err = errNotDelegated
	for ; len(dir) > len(t.mount); dir = filepath.Dir(dir) {
		if unix.Access(dir, unix.W_OK) != nil || unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) != nil {
			break
		}
		found, err = filepath.Join(dir, parentName), nil
	}
	return found, err
}

var errNotDelegated = errors.New("this user has no control group to make others in")

// enable makes the parent, and with version 2 lets its children use a
// controller.
func (t *hierarchy) enable(controller string) (string, error) {
	parent, err := t.parent()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	if !t.unified {
		return parent, nil
	}
	for _, dir := range []string{filepath.Dir(parent), parent} {
		control := filepath.Join(dir, "cgroup.subtree_control")
		if slices.Contains(strings.Fields(readLine(control)), controller) {
			continue
		}
		if err := os.WriteFile(control, []byte("+"+controller), 0); err != nil {
			return "", fmt.Errorf("controller %s in %s: %w", controller, dir, err)
		}
	}
	return parent, nil
}
