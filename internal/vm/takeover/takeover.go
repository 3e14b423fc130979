// Package takeover applies changes that the sync gate inside a virtual machine let pass
// to the files of this machine: all or none, with what they replace kept for an undo.
package takeover

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Change is what a path is to become.
type Change struct {
	Path    string
	Delete  bool
	Dir     bool
	Link    string // text of a symbolic link
	Mode    fs.FileMode
	Content []byte
	Overlay string // id of the overlay that it comes from
}

// saved is what a path was before a change, and what it is after.
type saved struct {
	Path   string      `json:"path"`
	Before string      `json:"before"` // what State returned
	After  string      `json:"after"`
	Mode   fs.FileMode `json:"mode"`
	Link   string      `json:"link,omitempty"`
	Backup string      `json:"backup,omitempty"` // of a file
	// Overlay is the id of the overlay that the change came from.
	Overlay string `json:"overlay,omitempty"`
}

// Batch is what was applied or put back together.
type Batch struct {
	ID    string
	Paths []Path
}

// Path is what a path is after that.
type Path struct{ Path, State, Overlay string }

// Names returns the paths.
func (b *Batch) Names() []string {
	names := make([]string, 0, len(b.Paths))
	for _, p := range b.Paths {
		names = append(names, p.Path)
	}
	return names
}

const (
	journalName = "journal.json"
	reasonName  = "reason"
)

// Apply applies changes below a directory, with the reason that a person gave for them.
// After an error everything is as it was.
func Apply(dir, keep, reason string, changes []Change) (*Batch, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	id := rand.Text()[:12]
	b := &batch{root: root, keep: filepath.Join(keep, id)}
	if err := os.MkdirAll(b.keep, 0o700); err != nil {
		return nil, err
	}
	if err := errors.Join(b.why(reason), b.apply(inOrder(withParents(root, changes)))); err != nil {
		return nil, errors.Join(err, b.takeBack(), os.RemoveAll(b.keep))
	}
	done := &Batch{ID: id}
	for _, s := range b.done {
		done.Paths = append(done.Paths, Path{s.Path, s.After, s.Overlay})
	}
	return done, nil
}

// inOrder returns changes so that deletions come last, each of them once and that of a
// directory after those of what is in it.
func inOrder(changes []Change) []Change {
	deletes := slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return !c.Delete })
	slices.SortFunc(deletes, func(a, b Change) int { return strings.Compare(b.Path, a.Path) })
	deletes = slices.CompactFunc(deletes, func(a, b Change) bool { return a.Path == b.Path })
	return append(slices.DeleteFunc(changes, func(c Change) bool { return c.Delete }), deletes...)
}

// withParents adds the directories that new files need and that are not there, so that
// they are put back too.
func withParents(root *os.Root, changes []Change) (list []Change) {
	made := map[string]bool{}
	for _, c := range changes {
		var missing []Change
		for dir := path.Dir(c.Path); !c.Delete && dir != "." && dir != "/" && !made[dir]; dir = path.Dir(dir) {
			if _, err := root.Lstat(dir); err == nil {
				break
			}
			made[dir] = true
			missing = append(missing, Change{Path: dir, Dir: true, Overlay: c.Overlay})
		}
		slices.Reverse(missing)
		made[c.Path] = c.Dir
		list = append(append(list, missing...), c)
	}
	return list
}

// batch is a batch at work.
type batch struct {
	root *os.Root
	keep string
	done []saved
}

func (b *batch) apply(changes []Change) error {
	for i := range changes {
		if !filepath.IsLocal(filepath.FromSlash(changes[i].Path)) {
			return fmt.Errorf("%q is no path below the project", changes[i].Path)
		}
		s, err := b.save(changes[i].Path, i)
		if err != nil {
			return err
		}
		s.Overlay = changes[i].Overlay
		b.done = append(b.done, s)
		if err := b.write(); err != nil { // before anything changes
			return err
		}
		if err := place(b.root, &changes[i]); err != nil {
			return err
		}
		if b.done[i].After, err = State(b.root, s.Path); err != nil {
			return err
		}
	}
	return b.write()
}

// why keeps the reason of a batch.
func (b *batch) why(reason string) error {
	if reason == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(b.keep, reasonName), []byte(reason+"\n"), 0o600)
}

// write writes the journal.
func (b *batch) write() error {
	text, err := json.Marshal(b.done)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.keep, journalName), text, 0o600)
}

// save keeps what a path is.
func (b *batch) save(name string, n int) (saved, error) {
	state, err := State(b.root, name)
	s := saved{Path: name, Before: state}
	if err != nil || state == "nothing" {
		return s, err
	}
	info, err := b.root.Lstat(name)
	if err != nil {
		return s, err
	}
	s.Mode = info.Mode().Perm()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		s.Link, err = b.root.Readlink(name)
	case info.Mode().IsRegular():
		var content []byte
		if content, err = b.root.ReadFile(name); err == nil {
			s.Backup = fmt.Sprint(n)
			err = os.WriteFile(filepath.Join(b.keep, s.Backup), content, 0o600)
		}
	}
	return s, err
}

// place makes a path what a change says.
func place(root *os.Root, c *Change) error {
	switch {
	case c.Delete:
		return root.Remove(c.Path)
	case c.Dir && c.Mode == 0:
		return root.MkdirAll(c.Path, 0o755)
	case c.Dir:
		return errors.Join(root.MkdirAll(c.Path, 0o755), root.Chmod(c.Path, c.Mode.Perm()))
	}
	beside := path.Join(path.Dir(c.Path), ".atoll-"+rand.Text())
	var err error
	if c.Link != "" {
		err = root.Symlink(c.Link, beside)
	} else {
		err = root.WriteFile(beside, c.Content, 0o600)
		err = errors.Join(err, root.Chmod(beside, c.Mode.Perm()))
	}
	if err == nil {
		err = root.Rename(beside, c.Path)
	}
	if err != nil {
		_ = root.Remove(beside)
	}
	return err
}
