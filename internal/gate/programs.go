package gate

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

// maxCompared is the largest file whose lines are compared.
const maxCompared = 256 << 10

// judgeContent looks into a staged file: programs, scripts of a package, lines.
func (c *collection) judgeContent(e *Entry) error {
	if e.SHA256 == "" || e.Mode.Type() != 0 {
		return nil
	}
	data, err := c.staged(e.SHA256)
	if err != nil {
		return err
	}
	old, err := c.base.read(e.Path, c.limits.FileBytes)
	if err != nil {
		old = nil // new, or not a file
	}
	if isProgram(data) && !bytes.Equal(old, data) {
		e.add("program", contentpolicy.Approval, "it is a compiled program")
	}
	if strings.EqualFold(path.Base(e.Path), "package.json") && !sameScripts(old, data) {
		e.add("package-scripts", contentpolicy.Approval, "it changes what npm and its kin execute")
	}
	if len(old) <= maxCompared && len(data) <= maxCompared {
		e.Added, e.Removed = countLines(old, data)
	}
	return nil
}

// isProgram reports what a kernel executes or a linker loads.
func isProgram(data []byte) bool {
	for _, magic := range []string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xfe\xed\xfa\xcf", "\xfe\xed\xfa\xce", "\xca\xfe\xba\xbe", "\x00asm", "!<arch>\n"} {
		if bytes.HasPrefix(data, []byte(magic)) && bytes.IndexByte(data, 0) >= 0 {
			return true
		}
	}
	return false
}

// sameScripts reports whether two package.json files execute the same. What cannot
// be read is not the same.
func sameScripts(old, data []byte) bool {
	executed := func(text []byte) (map[string]string, bool) {
		if text == nil {
			return map[string]string{}, true
		}
		var all map[string]json.RawMessage
		if json.Unmarshal(text, &all) != nil {
			return nil, false
		}
		parts := map[string]string{}
		for name, value := range all {
			switch folded := strings.ToLower(name); folded {
			case "scripts", "bin", "gypfile", "packagemanager", "workspaces", "pnpm", "overrides", "resolutions", "husky", "lint-staged", "simple-git-hooks", "config":
				parts[name] = string(compact(value))
			}
		}
		return parts, true
	}
	before, ok := executed(old)
	after, good := executed(data)
	return ok && good && maps.Equal(before, after)
}

func compact(value json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return value
	}
	return out.Bytes()
}

// countLines counts the lines that a diff adds and removes.
func countLines(old, data []byte) (added, removed int) {
	text := diff.Unified("a", "b", old, data, 0)
	for n, line := range strings.Split(text, "\n") {
		switch {
		case n < 2: // names
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return added, removed
}

// judgeLockfile reports a file of resolved dependencies that changes without the
// file that asks for them.
func judgeLockfile(e *Entry, changed map[string]bool) {
	manifests := map[string][]string{
		"package-lock.json": {"package.json"}, "npm-shrinkwrap.json": {"package.json"}, "yarn.lock": {"package.json"}, "pnpm-lock.yaml": {"package.json"},
		"bun.lock": {"package.json"}, "bun.lockb": {"package.json"}, "cargo.lock": {"Cargo.toml"}, "go.sum": {"go.mod"}, "poetry.lock": {"pyproject.toml"},
		"uv.lock": {"pyproject.toml"}, "pdm.lock": {"pyproject.toml"}, "pipfile.lock": {"Pipfile"}, "composer.lock": {"composer.json"}, "gemfile.lock": {"Gemfile"},
		"flake.lock": {"flake.nix"}, "packages.lock.json": {}, "deno.lock": {"deno.json", "deno.jsonc"},
	}
	wanted, isLock := manifests[strings.ToLower(path.Base(e.Path))]
	if !isLock || e.Kind == overlay.Deleted {
		return
	}
	for _, name := range wanted {
		if changed[path.Join(path.Dir(e.Path), name)] {
			return
		}
	}
	e.add("lockfile", contentpolicy.Approval, "it changes which dependencies are installed, and nothing that asks for them changed")
}
