package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Head returns the commit that is checked out, and the branch it is of. The commit
// is "" on a branch without commits, the branch "" on a detached HEAD.
func (c *Checkout) Head() (id, ref string, err error) {
	line := firstLine(filepath.Join(c.Dir, "HEAD"))
	ref, ok := strings.CutPrefix(line, "ref: ")
	if !ok {
		if !IsID(line) {
			return "", "", fmt.Errorf("the HEAD of %s cannot be read", c.Top)
		}
		return line, "", nil
	}
	id, err = c.Ref(ref)
	return id, ref, err
}

// Ref returns the commit of a ref; "" if it does not exist.
func (c *Checkout) Ref(ref string) (string, error) {
	refs, err := c.Refs()
	return refs[ref], err
}

// Refs returns every ref of the repository and its object. Symbolic refs are left
// out: they name another ref.
func (c *Checkout) Refs() (map[string]string, error) {
	root, err := os.OpenRoot(c.Common)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readRefs(root)
}

func readRefs(root *os.Root) (map[string]string, error) {
	refs, err := packedRefs(root)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root.FS(), "refs", func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil || !e.Type().IsRegular() || strings.HasSuffix(name, ".lock"):
			return err
		}
		return addLoose(root, name, refs)
	})
	if err == nil && len(refs) > maxRefs {
		err = fmt.Errorf("the repository has more than %d refs", maxRefs)
	}
	return refs, err
}

func addLoose(root *os.Root, name string, refs map[string]string) error {
	text, err := readBeneath(root, name, maxGitFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	value := strings.TrimSpace(string(text))
	switch {
	case IsID(value):
		refs[name] = value
	case strings.HasPrefix(value, "ref: ") || value == "":
	default:
		return unreadableRef(name, value)
	}
	return nil
}

func unreadableRef(name, value string) error {
	if len(value) == 64 && isHex(value) {
		return fmt.Errorf("the repository names its objects by SHA-256, which is not supported")
	}
	return fmt.Errorf("the ref %.200q cannot be read", name)
}

// packedRefs reads the refs that git has packed.
func packedRefs(root *os.Root) (map[string]string, error) {
	refs := map[string]string{}
	text, err := readBeneath(root, "packed-refs", maxPacked)
	if errors.Is(err, fs.ErrNotExist) {
		return refs, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' || line[0] == '^' {
			continue
		}
		id, name, ok := strings.Cut(line, " ")
		if !ok || !IsID(id) {
			return nil, unreadableRef(name, id)
		}
		refs[name] = id
	}
	return refs, nil
}

// Shallow returns the commits at which the history is cut off.
func (c *Checkout) Shallow() ([]string, error) {
	text, err := readFile(filepath.Join(c.Common, "shallow"), maxPacked)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	ends := strings.Fields(string(text))
	for _, id := range ends {
		if !IsID(id) {
			return nil, fmt.Errorf("%s cannot be read", filepath.Join(c.Common, "shallow"))
		}
	}
	return ends, err
}

// UsedIn returns the work tree that a ref is checked out or being rebased in; "" if
// there is none. Moving such a ref would change what that work tree stands on.
func (c *Checkout) UsedIn(ref string) (string, error) {
	dirs, err := filepath.Glob(filepath.Join(c.Common, "worktrees", "*"))
	if err != nil {
		return "", err
	}
	for _, dir := range append([]string{c.Dir, c.Common}, dirs...) {
		if firstLine(filepath.Join(dir, "HEAD")) == "ref: "+ref || rebases(dir, ref) {
			return c.treeOf(dir), nil
		}
	}
	return "", nil
}

func rebases(dir, ref string) bool {
	for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name"} {
		if firstLine(filepath.Join(dir, name)) == ref {
			return true
		}
	}
	return false
}

// treeOf returns the work tree whose part of the repository a directory is.
func (c *Checkout) treeOf(dir string) string {
	switch back := firstLine(filepath.Join(dir, "gitdir")); {
	case dir == c.Dir:
		return c.Top
	case back != "":
		return filepath.Dir(joinPath(dir, back))
	}
	return filepath.Dir(dir)
}

// IsID reports whether text is the whole SHA-1 name of an object.
func IsID(text string) bool { return len(text) == 40 && isHex(text) }

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

// collision returns a ref that cannot exist beside another one: git keeps the one
// as a file where the other needs a directory.
func collision(refs map[string]string, ref string) string {
	for above := path.Dir(ref); above != "." && above != "refs"; above = path.Dir(above) {
		if refs[above] != "" {
			return above
		}
	}
	for other := range refs {
		if strings.HasPrefix(other, ref+"/") {
			return other
		}
	}
	return ""
}
