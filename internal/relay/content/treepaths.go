package content

import (
	"strings"

	"github.com/atoll-run/atoll/internal/relay/git"
)

// treePaths counts the spellings of the paths and directories of one tree, by
// their case-folded form.
type treePaths map[string]map[string]int

func newTreePaths(paths []string) treePaths {
	n := treePaths{}
	for _, path := range paths {
		n.count(path, 1)
	}
	return n
}

// count adds to every directory of a path, and to the path.
func (n treePaths) count(path string, by int) {
	for end := range prefixes(path) {
		spelled := path[:end]
		folded := fold(spelled)
		if n[folded] == nil {
			n[folded] = map[string]int{}
		}
		n[folded][spelled] += by
		if n[folded][spelled] <= 0 {
			delete(n[folded], spelled)
		}
	}
}

// apply adds and removes the changed paths.
func (n treePaths) apply(changes []git.Change) {
	for i := range changes {
		switch {
		case changes[i].Added():
			n.count(changes[i].Path, 1)
		case changes[i].Removed():
			n.count(changes[i].Path, -1)
		}
	}
}

// otherSpelling returns another spelling of a path or of a directory above it, or "".
func (n treePaths) otherSpelling(path string) string {
	for end := range prefixes(path) {
		for spelled := range n[fold(path[:end])] {
			if spelled != path[:end] {
				return spelled
			}
		}
	}
	return ""
}

// prefixes yields where each directory of a path ends, and where the path does.
func prefixes(path string) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range len(path) {
			if path[i] == '/' && !yield(i) {
				return
			}
		}
		if strings.HasSuffix(path, "/") {
			return
		}
		yield(len(path))
	}
}
