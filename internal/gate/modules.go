package gate

import (
	"maps"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// maxModules is how many repositories of submodules are named.
const maxModules = 20

// moduleSigns are what the agent changed in the repository of a submodule.
type moduleSigns struct{ objects, refs bool }

// noteModule notes a change in the repository of a submodule. A commit adds objects and
// moves a ref.
func (c *collection) noteModule(change *overlay.Change) {
	name, below, ok := splitModule(change.Path)
	if !ok || change.Kind == overlay.Deleted || change.Mode.IsDir() || c.modules[name] == nil && len(c.modules) == maxModules {
		return
	}
	if c.modules[name] == nil {
		c.modules[name] = &moduleSigns{}
	}
	c.modules[name].objects = c.modules[name].objects || strings.HasPrefix(below, "objects/")
	c.modules[name].refs = c.modules[name].refs || below == "HEAD" || strings.HasPrefix(below, "refs/heads/")
}

// splitModule returns the name of the submodule whose repository has a path, and the
// path in it.
func splitModule(path string) (name, below string, ok bool) {
	rest, ok := strings.CutPrefix(path, ".git/modules/")
	if !ok {
		return "", "", false
	}
	for _, part := range []string{"/objects/", "/refs/heads/", "/HEAD"} {
		if i := strings.LastIndex(rest, part); i > 0 && (part != "/HEAD" || i+len(part) == len(rest)) {
			return rest[:i], rest[i+1:], true
		}
	}
	return "", "", false
}

// committedModules returns the submodules in which the agent has committed.
func (c *collection) committedModules() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.modules)) {
		if c.modules[name].objects && c.modules[name].refs {
			names = append(names, name)
		}
	}
	return names
}
