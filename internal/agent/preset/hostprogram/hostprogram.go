// Package hostprogram finds the programs of presets that are installed on the host,
// and what of the host a sandbox has to show to run them.
package hostprogram

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/preset"
)

// Search looks for programs on the search path of the host.
type Search struct {
	Path string // as in PATH
	Not  string // directory whose own programs do not count
}

// Program is a program of the host.
type Program struct {
	Path  string
	Shown []string // files and directories that it needs besides the host's /usr
	Dirs  []string // for the search path inside
}

// Shown returns what a sandbox has to show for the programs of all presets, sorted: so
// several agents can use one sandbox.
func (s Search) Shown(presets []*preset.Preset) (shown []string) {
	for _, p := range presets {
		if found, ok := s.Find(p); ok {
			shown = append(shown, found.Shown...)
		}
	}
	slices.Sort(shown)
	return slices.Compact(shown)
}

// Find finds the program of a preset that is made of a package.
func (s Search) Find(p *preset.Preset) (Program, bool) {
	file, ok := s.lookUp(p.Program)
	if !ok || p.NPM == nil {
		return Program{}, false
	}
	found := Program{Path: file}
	found.show(file)
	if interpreter := interpreterOf(file); interpreter != "" {
		node, ok := s.lookUp(interpreter)
		if !ok {
			return Program{}, false
		}
		found.show(node)
		found.Dirs = append(found.Dirs, filepath.Dir(node))
	}
	return found, true
}

// show adds what a program needs: the directory of packages that it lies in, or
// itself. What lies below /usr is there already.
func (p *Program) show(file string) {
	const packages = "/node_modules/"
	if strings.HasPrefix(file, "/usr/") {
		return
	}
	if at := strings.Index(file, packages); at >= 0 {
		file = file[:at+len(packages)-1]
	}
	if !slices.Contains(p.Shown, file) {
		p.Shown = append(p.Shown, file)
	}
}

// lookUp finds a program on the search path, as it is without links.
func (s Search) lookUp(name string) (string, bool) {
	for _, dir := range filepath.SplitList(s.Path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || isWithin(s.Not, file) {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, true
		}
	}
	return "", false
}

// isWithin reports whether path lies below dir.
func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// maxFirstLine bounds the first line of a script.
const maxFirstLine = 256

// interpreterOf is the program that a script asks env for; "" if the file is no such
// script.
func interpreterOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	line, err := bufio.NewReaderSize(f, maxFirstLine).ReadSlice('\n')
	words := strings.Fields(string(line))
	if err != nil || len(words) < 2 || !strings.HasPrefix(words[0], "#!") || filepath.Base(words[0]) != "env" {
		return ""
	}
	words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
	if len(words) == 0 || strings.Contains(words[0], "/") {
		return ""
	}
	return words[0]
}
