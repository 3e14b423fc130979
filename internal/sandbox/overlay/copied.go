package overlay

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// copied is one directory of a copy, and the base's at the same path.
type copied struct {
	dir   *os.File
	here  *os.File // nil: no directory is there
	at    string
	depth int
}

// copyDir reports the changes in one directory of a copy: what is not as in the
// manifest and not as in the base either.
func (r *reader) copyDir(d copied) error {
	names, err := r.names(d.dir)
	if err != nil {
		return err
	}
	noted, err := r.expected(d.at)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.copyEntry(d, name, noted[name]); err != nil {
			return err
		}
		delete(noted, name)
	}
	for _, name := range slices.Sorted(maps.Keys(noted)) {
		if r.tree.leavesEmpty(name, d.dir, d.here) {
			continue
		}
		if err := r.deleted(d.here, name, path.Join(d.at, name)); err != nil {
			return err
		}
	}
	return nil
}

// expected returns what a directory of a copy had at the beginning, and by name only
// what was applied to the base since: what is missing of it was deleted.
func (r *reader) expected(at string) (map[string]entry, error) {
	noted, err := r.manifest.entries(at)
	if err != nil {
		return nil, err
	}
	if r.appliedIn == nil {
		r.appliedIn = map[string][]string{}
		for name, line := range r.applied {
			if _, hidden := r.hidden[name]; line.Entry != nil && !hidden {
				dir, base := path.Split(name)
				dir = strings.TrimSuffix(dir, "/")
				r.appliedIn[dir] = append(r.appliedIn[dir], base)
			}
		}
	}
	for _, name := range r.appliedIn[at] {
		if _, ok := noted[name]; !ok {
			if noted == nil {
				noted = map[string]entry{}
			}
			noted[name] = entry{}
		}
	}
	return noted, nil
}

// copyEntry reports one entry of a copy.
func (r *reader) copyEntry(d copied, name string, noted entry) error {
	st, err := statAt(d.dir, name)
	if err != nil {
		return r.unseen(path.Join(d.at, name), 0, err)
	}
	now := entryOf(&st)
	if now.isDir() && r.tree.leavesEmpty(name, d.dir, d.here) {
		return nil
	}
	if now.isDir() {
		return r.copySubdirectory(d, name, &st, noted)
	}
	noted.Link = ""
	if now == noted {
		return nil
	}
	return r.compare(file{dir: d.dir, name: name, st: &st, at: path.Join(d.at, name)}, d.here)
}

func (r *reader) copySubdirectory(parent copied, name string, st *unix.Stat_t, noted entry) error {
	below := copied{at: path.Join(parent.at, name), depth: parent.depth + 1}
	if note := tooFar(below.at, below.depth); note != "" {
		return r.special(below.at, st.Mode, note)
	}
	var err error
	below.dir, err = openDirAt(parent.dir, name)
	if err != nil {
		return r.unseen(below.at, st.Mode, err)
	}
	defer closeFile(below.dir)
	if noted.Mode != st.Mode {
		if err := r.directory(layers{}, parent.here, name, below.at, st); err != nil {
			return err
		}
	}
	if parent.here != nil {
		below.here = optionalDir(openDirAt(parent.here, name))
		defer closeFile(below.here)
	}
	return r.copyDir(below)
}
