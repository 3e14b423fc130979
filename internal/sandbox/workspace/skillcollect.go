package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// skillTree is a directory as it should be in the copy.
type skillTree struct {
	files map[string]skillSource
	dirs  map[string]*skillTree
}

func newSkillTree() *skillTree {
	return &skillTree{files: map[string]skillSource{}, dirs: map[string]*skillTree{}}
}

// skillSource is where a file comes from.
type skillSource struct {
	root *os.File
	rel  string // below root: "<skill>/…"
	mode fs.FileMode
	mark string
}

// skillCollector finds the skills that an agent may use. It reads names and
// facts, no contents.
type skillCollector struct {
	SkillOptions
	warnings *Warnings
	roots    []*os.File
	found    *skillTree // its dirs are the skills
	files    int
	bytes    int64
}

func (c *skillCollector) close() { closeAll(c.roots...) }

// collect takes over root and adds its skills.
func (c *skillCollector) collect(root *os.File) {
	c.roots = append(c.roots, root)
	names, err := c.names(root)
	if err != nil {
		c.warnings.addf(skillsName, "not synced: %v", err)
		return
	}
	for _, name := range names {
		if c.eligible(root, name) {
			c.add(root, name)
		}
	}
}

// eligible tells whether an entry of a root is a skill for this agent. What was
// probably meant to be one, but cannot be, gets a warning.
func (c *skillCollector) eligible(root *os.File, name string) bool {
	switch st, err := lstatAt(root, name); {
	case err != nil, ignoredName(name), c.Allowed != nil && !slices.Contains(c.Allowed, name):
		return false
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		c.refuse(name, "is a symbolic link")
		return false
	case st.Mode&unix.S_IFMT != unix.S_IFDIR, !hasSkillFile(root, name):
		return false
	}
	switch {
	case printable(name) != name:
		c.refuse(name, "its name has characters that cannot be shown")
		return false
	case !c.readable(path.Join(name, skillFileName)):
		return false
	case c.found.dirs[name] != nil:
		c.refuse(name, "another skill has the same name and comes first")
		return false
	case len(c.found.dirs) >= MaxSkills:
		c.refuse(name, fmt.Sprintf("there are more than %d skills", MaxSkills))
		return false
	}
	return true
}

// ignoredName tells which entries are no part of a skill.
func ignoredName(name string) bool {
	return strings.TrimSpace(name) == "" || name == "." || name == ".." || name == ".git" || name == "node_modules"
}

func hasSkillFile(root *os.File, name string) bool {
	dir, err := openDirAt(root, name)
	if err != nil {
		return false
	}
	defer closeAll(dir)
	there, err := existsAt(dir, skillFileName)
	return there && err == nil
}

func (c *skillCollector) readable(rel string) bool {
	return c.Readable == nil || c.Readable(path.Join(skillsName, rel))
}

func (c *skillCollector) refuse(rel, why string) {
	c.warnings.addf(path.Join(skillsName, rel), "not synced: %s", why)
}

var errSkillLimits = fmt.Errorf("the skills together have more than %d files or %d MiB", MaxSkillFiles, MaxSkillTotalBytes>>20)

// add collects one skill as a whole or not at all.
func (c *skillCollector) add(root *os.File, name string) {
	files, bytes := c.files, c.bytes
	tree, err := c.enter(root, root, name)
	if err == nil && !tree.has(skillFileName) {
		err = errors.New("its SKILL.md cannot be used")
	}
	if err != nil {
		c.files, c.bytes = files, bytes
		c.refuse(name, reason(err).Error())
		return
	}
	c.found.dirs[name] = tree
}

func (t *skillTree) has(name string) bool {
	_, ok := t.files[name]
	return ok
}

// enter collects the directory parent/<base of rel>; rel is its path below root.
func (c *skillCollector) enter(root, parent *os.File, rel string) (*skillTree, error) {
	dir, err := openDirAt(parent, path.Base(rel))
	if err != nil {
		return nil, err
	}
	defer closeAll(dir)
	names, err := c.names(dir)
	if err != nil {
		return nil, err
	}
	tree := newSkillTree()
	for _, name := range names {
		if err := c.entry(skillFile{root, dir, path.Join(rel, name)}, tree); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// skillFile is an entry of a skill that is being looked at.
type skillFile struct {
	root, dir *os.File
	rel       string // below root
}

func (c *skillCollector) entry(at skillFile, tree *skillTree) error {
	name := path.Base(at.rel)
	st, err := lstatAt(at.dir, name)
	if err != nil || ignoredName(name) {
		return ignoreMissing(err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if depth(at.rel) > MaxSkillDepth {
			c.refuse(at.rel, fmt.Sprintf("deeper than %d directories", MaxSkillDepth))
			return nil
		}
		tree.dirs[name], err = c.enter(at.root, at.dir, at.rel)
		return err
	case unix.S_IFREG:
		return c.file(at, tree, st)
	}
	c.refuse(at.rel, "neither a file nor a directory (links are refused wherever they lead)")
	return nil
}

func (c *skillCollector) file(at skillFile, tree *skillTree, st unix.Stat_t) error {
	switch {
	case !c.readable(at.rel):
		return nil
	case st.Nlink > 1:
		c.refuse(at.rel, "has more than one hard link")
		return nil
	case st.Size > MaxSkillFileBytes:
		c.refuse(at.rel, fmt.Sprintf("larger than %d MiB", MaxSkillFileBytes>>20))
		return nil
	}
	c.files++
	c.bytes += st.Size
	if c.files > MaxSkillFiles || c.bytes > MaxSkillTotalBytes {
		return errSkillLimits
	}
	mode := fs.FileMode(sharedFileMode)
	if st.Mode&0o111 != 0 {
		mode = 0o755
	}
	tree.files[path.Base(at.rel)] = skillSource{root: at.root, rel: at.rel, mode: mode, mark: mark(st)}
	return nil
}

// names reads a directory in order. One with more names than files are allowed
// is refused.
func (c *skillCollector) names(dir *os.File) ([]string, error) {
	var all []string
	for {
		names, err := nextNames(dir)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			slices.Sort(all)
			return all, nil
		}
		if all = append(all, names...); len(all) > MaxSkillFiles {
			return nil, errSkillLimits
		}
	}
}
