package synccmd

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
)

// errNoMatch means that a pattern names no change.
var errNoMatch = errors.New("nothing that changed is called so")

// choose returns the entries of an overlay that arguments name. A path may be written
// from the top of the base, as it is shown, or where nothing is called so from the
// working directory, as a shell completes it.
func (v *verb) choose(t *api.SyncTree, args []string) ([]api.SyncEntry, error) {
	entries := sorted(t.Entries)
	cwd, err := os.Getwd()
	if err != nil {
		cwd = t.Base
	}
	patterns := make([]string, 0, len(args))
	for _, arg := range args {
		if rel := fromBase(t.Base, cwd, arg); len(fitting(entries, arg)) == 0 && len(fitting(entries, rel)) > 0 {
			arg = rel
		}
		patterns = append(patterns, arg)
	}
	return choose(entries, patterns)
}

// fromBase returns a path that is relative to cwd, or absolute, as one that is
// relative to the base; as it is if it is not below the base.
func fromBase(base, cwd, arg string) string {
	if arg == "" || base == "" {
		return arg
	}
	if !filepath.IsAbs(arg) {
		arg = filepath.Join(cwd, arg)
	}
	rel, err := filepath.Rel(base, arg)
	switch {
	case err != nil || rel == ".." || strings.HasPrefix(rel, "../"):
		return arg
	case rel == ".":
		return "**"
	}
	return rel
}

// choose returns the entries that the patterns name: by the path, by the path as it
// is printed, by a directory above it, or by a pattern with * and **. Unlike the
// rules of the gate it tells upper from lower case: a person names what was shown. A pattern that
// names nothing is an error, so that a mistyped one is not taken for done.
func choose(entries []api.SyncEntry, patterns []string) ([]api.SyncEntry, error) {
	var chosen []api.SyncEntry
	for _, pattern := range patterns {
		fits := fitting(entries, pattern)
		if len(fits) == 0 {
			return nil, errhint.With(fmt.Errorf("%s: %w", console.Printable(pattern), errNoMatch), "`atoll sync review` lists what changed")
		}
		chosen = append(chosen, fits...)
	}
	var list []api.SyncEntry
	for i := range entries { // in the order of the set, each once
		if slices.ContainsFunc(chosen, func(e api.SyncEntry) bool { return e.Path == entries[i].Path && e.Kind == entries[i].Kind }) {
			list = append(list, entries[i])
		}
	}
	return list, nil
}

// fitting returns the entries that one pattern names: exact names go before patterns,
// so that a name with a star in it means itself.
func fitting(entries []api.SyncEntry, pattern string) []api.SyncEntry {
	tests := []func(path string) bool{
		func(path string) bool { return path == pattern },
		func(path string) bool { return console.Printable(path) == pattern },
		func(path string) bool { return strings.HasPrefix(path, strings.TrimSuffix(pattern, "/")+"/") },
		func(path string) bool { return matches(strings.Split(pattern, "/"), strings.Split(path, "/")) },
	}
	for _, test := range tests {
		var found []api.SyncEntry
		for i := range entries {
			if test(entries[i].Path) {
				found = append(found, entries[i])
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// matches reports whether the elements of a path have the form of a pattern's; ** is
// any number of them.
func matches(pattern, name []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			return matches(pattern[1:], name) || len(name) > 0 && matches(pattern, name[1:])
		}
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); err != nil || !ok {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return len(name) == 0
}
