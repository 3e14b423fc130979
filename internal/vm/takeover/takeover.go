// Package takeover applies changes that the sync gate inside a virtual machine let pass
// to the files of this machine: all or none, with what they replace kept for an undo.
package takeover

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Change is what a path is to become.
type Change struct {
	Path    string
	Delete  bool
	Dir     bool
	Link    string // text of a symbolic link
	Mode    fs.FileMode
	Content []byte
}

// saved is what a path was before a change, and what it is after.
type saved struct {
	Path   string      `json:"path"`
	Before string      `json:"before"` // what State returned
	After  string      `json:"after"`
	Mode   fs.FileMode `json:"mode"`
	Link   string      `json:"link,omitempty"`
	Backup string      `json:"backup,omitempty"` // of a file
}

const journalName = "journal.json"

// State names what a path is: nothing, a directory, a link, or a file with its hash.
func State(root *os.Root, name string) (string, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "nothing", nil
	case err != nil:
		return "", err
	case info.IsDir():
		return "directory", nil
	case info.Mode()&fs.ModeSymlink != 0:
		text, err := root.Readlink(name)
		return "link to " + text, err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no file", name)
	}
	content, err := root.ReadFile(name)
	return "file " + Sum(content), err
}

// Sum returns the hash of a content.
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Apply applies changes below a directory and returns the id that undoes them. After an
// error everything is as it was.
func Apply(dir, keep string, changes []Change) (id string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	id = rand.Text()[:12]
	b := &batch{root: root, keep: filepath.Join(keep, id)}
	if err := os.MkdirAll(b.keep, 0o700); err != nil {
		return "", err
	}
	if err := b.apply(withParents(root, changes)); err != nil {
		return "", errors.Join(err, b.takeBack(), os.RemoveAll(b.keep))
	}
	return id, nil
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
			missing = append(missing, Change{Path: dir, Dir: true})
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
	case c.Dir:
		return root.MkdirAll(c.Path, 0o755)
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

// takeBack puts back what was changed, the last first.
func (b *batch) takeBack() error {
	var wrong []error
	for _, s := range slices.Backward(b.done) {
		wrong = append(wrong, b.restore(&s))
	}
	return errors.Join(wrong...)
}

// restore makes a path what it was.
func (b *batch) restore(s *saved) error {
	if now, err := State(b.root, s.Path); err != nil || now == s.Before {
		return err
	}
	c := Change{Path: s.Path, Mode: s.Mode, Link: s.Link, Delete: s.Before == "nothing", Dir: s.Before == "directory"}
	if s.Backup != "" {
		content, err := os.ReadFile(filepath.Join(b.keep, s.Backup))
		if err != nil {
			return err
		}
		c.Content = content
	}
	return place(b.root, &c)
}

var idForm = regexp.MustCompile(`^[A-Z0-9]{12}$`)

// Undo puts back what a batch changed, unless a path was changed since.
func Undo(dir, keep, id string) ([]string, error) {
	if !idForm.MatchString(id) {
		return nil, fmt.Errorf("%q is no id of a batch", id)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	b := &batch{root: root, keep: filepath.Join(keep, id)}
	text, err := os.ReadFile(filepath.Join(b.keep, journalName))
	if err != nil {
		return nil, errhint.With(fmt.Errorf("there is no batch %s", id), "`atoll vm apply` printed its id")
	}
	if err := json.Unmarshal(text, &b.done); err != nil {
		return nil, err
	}
	files := make([]string, 0, len(b.done))
	for _, s := range b.done {
		now, err := State(root, s.Path)
		if err != nil {
			return nil, err
		}
		if now != s.After {
			return nil, errhint.With(fmt.Errorf("%s was changed since", s.Path), "put it back by hand: what it was is in "+b.keep)
		}
		files = append(files, s.Path)
	}
	return files, errors.Join(b.takeBack(), os.RemoveAll(b.keep))
}
