package policy

import (
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Path is one file as the two sides of the wall name it.
type Path struct {
	Input     string `json:"input"`
	Host      string `json:"host"`
	Container string `json:"container"`
	Relative  string `json:"relative"` // to the workdir; the container path if outside it
	Writable  bool   `json:"writable"`
}

// PathError refuses a path. Its text goes to an agent as it is: whole sentences,
// the ones that agents know.
type PathError struct{ text string }

func (e *PathError) Error() string { return e.text }

func refusePath(format string, args ...any) error {
	return &PathError{fmt.Sprintf(format, args...)}
}

// PathMap translates between host and container paths. It works on text alone:
// code that opens the result must still refuse links that lead elsewhere.
type PathMap struct {
	workdir string
	home    string // of the host user, "" if unknown
	mounts  []Mount
	masks   []string // container paths that belong to no host path: tmpfs, volumes
}

// PathOptions are what a PathMap needs to know beside the mounts.
type PathOptions struct {
	Workdir string
	Home    string   // what "~" means on the host
	Masks   []string // targets of tmpfs and volumes
}

// NewPathMap makes the map of a sandbox from its mounts.
func NewPathMap(mounts []Mount, opt PathOptions) *PathMap {
	m := &PathMap{workdir: NormalizePath(opt.Workdir), mounts: lastMounts(mounts)}
	if strings.HasPrefix(opt.Home, "/") {
		m.home = NormalizePath(opt.Home)
	}
	for _, mask := range opt.Masks {
		m.masks = append(m.masks, NormalizePath(mask))
	}
	return m
}

// Resolve finds the file that an agent means. A relative path starts at cwd, a
// container path, "" being the workdir. An absolute path is first a path of the
// container, then one of the host.
func (m *PathMap) Resolve(input, cwd string) (Path, error) {
	if strings.ContainsRune(input, 0) {
		return Path{}, refusePath("Sandbox path contains a NUL byte: %q", input)
	}
	for _, candidate := range m.candidates(input, cwd) {
		found, err := m.lookup(input, candidate)
		if found.Container != "" || err != nil {
			return found, err
		}
	}
	for _, candidate := range m.candidates(input, cwd) {
		if mask, ok := deepest(m.masks, candidate); ok {
			return Path{}, m.containerOnly(candidate, mask)
		}
	}
	return Path{}, m.escapes(input)
}

// candidates lists the absolute paths that an input may mean, the likeliest first.
func (m *PathMap) candidates(input, cwd string) []string {
	text := strings.ReplaceAll(input, `\`, "/")
	text = strings.TrimPrefix(plainSpaces.Replace(text), "@")
	if rest, ok := strings.CutPrefix(text, "~"); ok && (rest == "" || rest[0] == '/') {
		// Inside, HOME is the workdir; a tool may mean the home of the host.
		inside := path.Join(m.workdir, rest)
		if m.home == "" {
			return []string{inside}
		}
		return []string{path.Join(m.home, rest), inside}
	}
	if !strings.HasPrefix(text, "/") {
		if cwd == "" {
			cwd = m.workdir
		}
		text = path.Join("/", cwd, text)
	}
	return []string{NormalizePath(text)}
}

// plainSpaces replaces the spaces that models copy out of formatted text. It
// leaves other bytes alone, also those that are no valid text.
var plainSpaces = strings.NewReplacer(
	"\u00A0", " ", "\u202F", " ", "\u205F", " ", "\u3000", " ",
	"\u2000", " ", "\u2001", " ", "\u2002", " ", "\u2003", " ", "\u2004", " ", "\u2005", " ",
	"\u2006", " ", "\u2007", " ", "\u2008", " ", "\u2009", " ", "\u200A", " ",
)

// lookup tries one absolute path in container space, then in host space. It
// returns nothing at all if the path belongs to no mount.
func (m *PathMap) lookup(input, p string) (Path, error) {
	if mount, ok := m.byTarget(p); ok {
		return m.path(input, mount, strings.TrimPrefix(p, mount.Target))
	}
	if mount, ok := m.bySource(p); ok {
		return m.path(input, mount, strings.TrimPrefix(p, mount.Source))
	}
	return Path{}, nil
}

// path builds the answer for a place below a mount, after making sure that
// nothing deeper hides it inside the sandbox.
func (m *PathMap) path(input string, mount Mount, below string) (Path, error) {
	container := path.Join(mount.Target, below)
	if mask, ok := deepest(m.masks, container); ok && len(mask) > len(mount.Target) {
		return Path{}, m.containerOnly(container, mask)
	}
	if seen, _ := m.byTarget(container); seen.Target != mount.Target {
		return Path{}, errhint.With(
			refusePath("Sandbox path is hidden by another mount: %s is covered by %s inside the sandbox", input, seen.Target),
			"Use the path as the sandbox sees it.")
	}
	return Path{
		Input:     input,
		Host:      path.Join(mount.Source, below),
		Container: container,
		Relative:  m.relative(container),
		Writable:  !mount.ReadOnly,
	}, nil
}

func (m *PathMap) relative(container string) string {
	switch {
	case container == m.workdir:
		return "."
	case within(container, m.workdir):
		return strings.TrimPrefix(strings.TrimPrefix(container, m.workdir), "/")
	}
	return container
}

// byTarget finds the mount that a container path belongs to.
func (m *PathMap) byTarget(p string) (Mount, bool) {
	return longest(m.mounts, p, func(mount Mount) string { return mount.Target })
}

// bySource finds the mount that a host path belongs to.
func (m *PathMap) bySource(p string) (Mount, bool) {
	return longest(m.mounts, p, func(mount Mount) string { return mount.Source })
}

// longest finds the mount with the longest root above p; of equal ones the
// last, because binds come after workspaces.
func longest(mounts []Mount, p string, root func(Mount) string) (best Mount, ok bool) {
	for _, mount := range mounts {
		if within(p, root(mount)) && (!ok || len(root(mount)) >= len(root(best))) {
			best, ok = mount, true
		}
	}
	return best, ok
}

func deepest(roots []string, p string) (best string, ok bool) {
	for _, root := range roots {
		if within(p, root) && len(root) >= len(best) {
			best, ok = root, true
		}
	}
	return best, ok
}

// escapes names the root as the sandbox sees it: who is told may be the sandbox,
// or a caller who must not learn of the host's directories.
func (m *PathMap) escapes(input string) error {
	return refusePath("Path escapes sandbox root (%s): %s. Use a path under %s/ instead.", m.workdir, input, strings.TrimSuffix(m.workdir, "/"))
}

func (m *PathMap) containerOnly(p, mask string) error {
	return refusePath("Sandbox path is container-only: %s. Use exec to access this mount (%s exists only inside the sandbox).", p, mask)
}
