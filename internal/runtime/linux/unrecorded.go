package linux

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// idFile holds the id of a sandbox, which names its control group, for the case
// that its record cannot be read any more.
const idFile = "id"

// idForm is what newRecord makes: 26 characters of base 32.
var idForm = lazyregexp.Word{First: "a-z2-7", Rest: "a-z2-7", Most: 26}

func validID(id string) bool { return len(id) == 26 && idForm.MatchString(id) }

// Unrecorded lists the names of sandboxes that left something without a record: a
// directory whose record cannot be read, or a guest that is not the one of the
// record.
func (r *Runtime) Unrecorded(context.Context) ([]string, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	left := map[string]bool{}
	for _, e := range entries {
		if _, err := load(filepath.Join(r.dir, e.Name())); validName(e.Name()) && errors.Is(err, sandbox.ErrNotFound) {
			left[e.Name()] = true
		}
	}
	guests, err := r.runningGuests()
	for _, g := range guests {
		if validName(g.name) && !r.isRecorded(g) {
			left[g.name] = true
		}
	}
	return slices.Sorted(maps.Keys(left)), err
}

// isRecorded reports whether a guest is the one that the record of its sandbox
// names.
func (r *Runtime) isRecorded(g guest) bool {
	rec, err := load(filepath.Join(r.dir, g.name))
	return err == nil && rec.Run.alive() && rec.Run.PID == g.pid
}

// writeID writes the id of a sandbox that has a control group.
func (i *Instance) writeID() error {
	if i.record.Groupless {
		return nil
	}
	return os.WriteFile(i.path(idFile), []byte(i.record.Summary.ID), 0o600)
}

// endUnrecorded ends the guests of a sandbox that are not in its record, and removes
// their control groups. They are found in /proc.
func (r *Runtime) endUnrecorded(ctx context.Context, name string) error {
	guests, err := r.runningGuests()
	if err != nil {
		return err
	}
	ids := map[string]bool{}
	if text, err := os.ReadFile(filepath.Join(r.dir, name, idFile)); err == nil {
		ids[string(text)] = true
	}
	for _, g := range guests {
		if g.name != name || r.isRecorded(g) {
			continue
		}
		id := groupID(g.pid)
		ids[id] = true
		if err := r.endGuest(ctx, g, id); err != nil {
			return fmt.Errorf("guest %d without a record: %w", g.pid, err)
		}
	}
	if rec, err := load(filepath.Join(r.dir, name)); err == nil {
		delete(ids, rec.Summary.ID)
	}
	for id := range ids {
		if err := r.removeGroup(ctx, &record{Summary: sandbox.Summary{ID: id}, Groupless: !validID(id)}); err != nil {
			return err
		}
	}
	return nil
}

// guest is the first process of a sandbox of this state directory.
type guest struct {
	pid  int
	name string // of the sandbox
}

// runningGuests finds the guests that run: each is process 1 of a pid namespace, and has
// the wire directory of its sandbox mounted.
func (r *Runtime) runningGuests() (list []guest, err error) {
	dir, err := mountRoot(r.dir)
	if err != nil {
		return nil, err
	}
	for _, pid := range processes() {
		if !isFirst(pid) {
			continue
		}
		if name := dir.wiredTo(pid); name != "" {
			list = append(list, guest{pid, name})
		}
	}
	return list, nil
}

// endGuest kills a guest. It checks the process again after opening its pidfd, for
// pids are reused.
func (r *Runtime) endGuest(ctx context.Context, g guest, id string) error {
	dir, err := mountRoot(r.dir)
	if err != nil {
		return err
	}
	l, err := newRunState(g.pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	held, err := l.openPidfd()
	if err != nil || held == nil {
		return err
	}
	defer held.Close()
	if dir.wiredTo(g.pid) != g.name {
		return nil
	}
	r.thawUnrecorded(id)
	if err := signal(held, unix.SIGKILL); err != nil {
		return err
	}
	return await(ctx, held)
}

// thawUnrecorded thaws the processes of a group, so that SIGKILL reaches them. A
// group that was never frozen is not changed.
func (r *Runtime) thawUnrecorded(id string) {
	host, err := r.groups()
	if err != nil || !validID(id) {
		return
	}
	if f, err := host.Freezer(id); err == nil {
		_ = f.Thaw()
	}
}

// processes returns the pids of all processes.
func processes() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isFirst reports whether a process is number 1 of a pid namespace below ours.
func isFirst(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(numbers)
			return len(fields) > 1 && fields[len(fields)-1] == "1"
		}
	}
	return false
}

// groupID returns the name of the control group that Atoll made for a process; ""
// if it is in none.
func groupID(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		for part := range strings.SplitSeq(strings.TrimSpace(line), "/") {
			if validID(part) {
				return part
			}
		}
	}
	return ""
}

// mounted is a directory as mountinfo names it: by its file system and its path
// there, whatever the path is in another mount namespace.
type mounted struct{ device, root string }

// deletedMark is what mountinfo adds to a directory that was removed.
const deletedMark = "//deleted"

// mountRoot returns how mountinfo names a directory of this mount namespace.
func mountRoot(dir string) (found mounted, err error) {
	dir, err = filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return mounted{}, nil // then nothing has it mounted
	} else if err != nil {
		return mounted{}, err
	}
	longest := -1
	err = eachMount("self", func(m mounted, point string) {
		rel, err := filepath.Rel(point, dir)
		if err == nil && filepath.IsLocal(rel) && len(point) >= longest {
			longest, found = len(point), mounted{m.device, filepath.Join(m.root, rel)}
		}
	})
	return found, err
}

// wiredTo returns the name of the sandbox, below the directory of all sandboxes,
// whose wire directory a process has mounted; "" if there is none.
func (dir mounted) wiredTo(pid int) (name string) {
	_ = eachMount(strconv.Itoa(pid), func(m mounted, point string) {
		m.root = strings.TrimSuffix(m.root, deletedMark)
		box := filepath.Dir(m.root)
		if point == wireTarget && m.device == dir.device && filepath.Base(m.root) == wireDir && filepath.Dir(box) == dir.root {
			name = filepath.Base(box)
		}
	})
	return name
}

// eachMount calls f for every mount that a process sees, the covered ones first.
func eachMount(pid string, f func(m mounted, point string)) error {
	file, err := os.Open("/proc/" + pid + "/mountinfo")
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 5 {
			f(mounted{fields[2], unescape(fields[3])}, unescape(fields[4]))
		}
	}
	return lines.Err()
}

// unescape decodes the four characters that mountinfo escapes.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
