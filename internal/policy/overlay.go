package policy

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/config"
)

// WorkspacePath returns where the files are that programs of an agent change: with
// an overlay what is mounted over the workspace, merged, and else the directory
// that is used directly. The access yolo-unsafe, which is rw, has no overlay.
func WorkspacePath(access config.Access, merged, direct string) string {
	if access == config.AccessOverlay {
		return merged
	}
	return direct
}

// ValidateTrees checks the directories of overlay.more as workspaces, and that
// no two directories that are kept apart lie in each other, on either side.
func ValidateTrees(s config.Sandbox, workspace string, host Host) (found []Finding) {
	if host.Disk == nil {
		host.Disk = textOnly{}
	}
	sources := []string{canonicalOf(workspace, host.Disk)}
	targets := []string{NormalizePath(s.Docker.Workdir)}
	for i, tree := range s.Overlay.More {
		add := func(key, hint, text string) {
			field := fmt.Sprintf("sandbox.overlay.more[%d].%s", i, key)
			found = append(found, Finding{Field: field, Message: "Sandbox security: " + text, Hint: hint})
		}
		for _, f := range ValidateWorkspace(tree.Source, host) {
			found = append(found, Finding{Field: fmt.Sprintf("sandbox.overlay.more[%d].source", i), Message: f.Message, Hint: f.Hint})
		}
		for _, p := range judgeTarget(tree.Target, s.Docker) {
			add("target", p.hint, p.text)
		}
		source, target := canonicalOf(tree.Source, host.Disk), NormalizePath(tree.Target)
		if other, ok := overlapping(source, sources); ok {
			add("source", "Name directories that are apart.", fmt.Sprintf("%q and %q lie in each other", source, other))
		}
		if other, ok := overlapping(target, targets); ok {
			add("target", "Name directories that are apart.", fmt.Sprintf("%q and %q lie in each other", target, other))
		}
		sources, targets = append(sources, source), append(targets, target)
	}
	return found
}

// canonicalOf returns a path without links; the path itself if that is not known.
func canonicalOf(path string, disk Disk) string {
	canonical, err := disk.Canonical(NormalizePath(path))
	if err != nil {
		return NormalizePath(path)
	}
	return canonical
}

// overlapping returns the first of the others that p lies in, or that lies in p.
func overlapping(p string, others []string) (string, bool) {
	i := slices.IndexFunc(others, func(other string) bool { return within(p, other) || within(other, p) })
	if i < 0 {
		return "", false
	}
	return others[i], true
}
