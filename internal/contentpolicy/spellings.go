package contentpolicy

import "strings"

// Spellings counts the spellings of the paths and directories of one tree, by
// their case-folded form.
type Spellings map[string]map[string]int

// NewSpellings returns the spellings of a tree with these paths.
func NewSpellings(paths []string) Spellings {
	n := Spellings{}
	for _, path := range paths {
		n.Count(path, 1)
	}
	return n
}

// Count adds to every directory of a path, and to the path.
func (n Spellings) Count(path string, by int) {
	for end := range prefixes(path) {
		spelled := path[:end]
		folded := Fold(spelled)
		if n[folded] == nil {
			n[folded] = map[string]int{}
		}
		n[folded][spelled] += by
		if n[folded][spelled] <= 0 {
			delete(n[folded], spelled)
		}
	}
}

// Other returns another spelling of a path or of a directory above it, or "".
func (n Spellings) Other(path string) string {
	for end := range prefixes(path) {
		for spelled := range n[Fold(path[:end])] {
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
