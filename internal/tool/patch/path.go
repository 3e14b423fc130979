package patch

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkPath refuses paths that no patch has use for. Whether a path leads to a
// file that may be touched is the FS's decision.
func checkPath(name string) error {
	last := path.Base(name)
	switch {
	case name == "":
		return ErrPathEmpty
	case len(name) > MaxPath:
		return ErrPathTooLong
	case !utf8.ValidString(name):
		return ErrPathNotUTF8
	case strings.ContainsRune(name, 0):
		return ErrPathNUL
	case strings.ContainsFunc(name, unicode.IsControl):
		return ErrPathControl
	case strings.Contains("/"+name+"/", "/../"):
		return ErrPathParent
	case strings.HasSuffix(name, "/"), strings.HasSuffix("/"+name, "/."), last == "/":
		return ErrPathDirectory
	}
	return nil
}

// checkDistinct refuses a patch that touches a file twice, or needs a path to
// be a file and a directory: what it means would depend on the order of things.
func checkDistinct(changes []Change) []error {
	type place struct {
		name string
		line int
	}
	var places []place
	for _, c := range changes {
		places = append(places, place{path.Clean(c.Path), c.Line})
		if c.MoveTo != "" {
			places = append(places, place{path.Clean(c.MoveTo), c.Line + 1})
		}
	}
	var errs []error
	seen := map[string]int{}
	for _, p := range places {
		if first, twice := seen[p.name]; twice {
			errs = append(errs, &SyntaxError{p.line, fmt.Errorf("%w: %q, first in line %d", ErrPathTwice, p.name, first)})
			continue
		}
		seen[p.name] = p.line
	}
	for _, p := range places {
		for dir := path.Dir(p.name); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if line, isFile := seen[dir]; isFile {
				errs = append(errs, &SyntaxError{p.line, fmt.Errorf("%w: %q, %q in line %d", ErrPathBelowFile, p.name, dir, line)})
			}
		}
	}
	return errs
}
