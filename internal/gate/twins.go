package gate

import (
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// judgeTwins reports new paths that are another file where case does not count.
func (c *collection) judgeTwins() {
	tree := contentpolicy.Spellings{}
	for i := range c.entries {
		if e := &c.entries[i]; e.Kind != overlay.Deleted {
			tree.Count(e.Path, 1)
		}
	}
	names := map[string][]string{}
	for i := range c.entries {
		e := &c.entries[i]
		if e.Kind == overlay.Deleted || e.Kind == overlay.Modified || e.Kind == overlay.Mode {
			continue
		}
		twin := tree.Other(e.Path)
		if twin == "" {
			twin = c.twinInBase(names, e.Path)
		}
		if twin != "" {
			e.add("path-collision", contentpolicy.Blocked, fmt.Sprintf("it is the same file as %q where case does not count", twin))
		}
	}
}

// twinInBase returns a path of the base that is another spelling of a path or of a
// directory above it.
func (c *collection) twinInBase(known map[string][]string, rel string) string {
	dir := "."
	for element := range strings.SplitSeq(rel, "/") {
		names, ok := known[dir]
		if !ok {
			names = c.base.names(dir)
			known[dir] = names
		}
		folded := contentpolicy.Fold(element)
		for _, name := range names {
			if name != element && contentpolicy.Fold(name) == folded && !c.gone[path.Join(dir, name)] {
				return path.Join(dir, name)
			}
		}
		dir = path.Join(dir, element)
	}
	return ""
}

// names returns the names in a directory of the base; none if it cannot be read.
func (b *baseDir) names(dir string) []string {
	opened, _, err := b.parent(path.Join(dir, "x"))
	if err != nil {
		return nil
	}
	defer opened.Close()
	names, _ := opened.Readdirnames(-1) // what was read counts
	return names
}
