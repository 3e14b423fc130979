package content

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// inspectChange applies the rules to one path of one commit. A removal breaks only
// protections.
func (j *inspection) inspectChange(commit string, c *git.Change, tree contentpolicy.Spellings) {
	known := j.pathFindings(c.Path)
	for _, finding := range known.touched {
		finding.Commit, finding.Path = commit, c.Path
		j.report.add(finding)
	}
	if c.Removed() {
		return
	}
	for _, finding := range slices.Concat(known.there, changeFindings(c, tree), j.modeFindings(c)) {
		finding.Commit, finding.Path = commit, c.Path
		j.report.add(finding)
	}
	j.addBlob(c, location{commit, c.Path})
}

// addBlob queues a blob for reading. The same blob may be a file and a link, and a
// link may lead out of the tree from one path and not from another.
func (j *inspection) addBlob(c *git.Change, at location) {
	if c.NewMode == git.ModeModule {
		return
	}
	if c.NewMode == git.ModeLink {
		j.links[c.NewID] = append(j.links[c.NewID], at)
	}
	if _, seen := j.blobs[c.NewID]; !seen {
		j.blobs[c.NewID] = at
		j.order = append(j.order, c.NewID)
	}
}

// pathFindings is what is wrong with a path itself, whatever commit it is in.
type pathFindings struct {
	touched []contentpolicy.Finding // if it changes in any way
	there   []contentpolicy.Finding // if it is there
}

// pathFindings judges each path once: the same files change again and again.
func (j *inspection) pathFindings(path string) *pathFindings {
	known := j.paths[path]
	if known == nil {
		known = &pathFindings{touched: j.protected.Path(path), there: contentpolicy.Path(path)}
		j.paths[path] = known
	}
	return known
}

// changeFindings is what is wrong with a path in one commit.
func changeFindings(c *git.Change, tree contentpolicy.Spellings) (found []contentpolicy.Finding) {
	if c.Added() {
		if twin := tree.Other(c.Path); twin != "" {
			found = append(found, contentpolicy.Finding{Rule: "path-collision", Verdict: contentpolicy.Blocked, Detail: fmt.Sprintf("it is the same file as %q where case does not count", twin)})
		}
	}
	return found
}

// modeFindings is what is wrong with the kind of a path in one commit.
func (j *inspection) modeFindings(c *git.Change) []contentpolicy.Finding {
	switch c.NewMode {
	case git.ModeFile, git.ModeProgram, git.ModeLink:
		return nil
	case git.ModeModule:
		return []contentpolicy.Finding{{Rule: "mode", Verdict: j.policy.Modules, Detail: "it is a reference to another repository"}}
	}
	return []contentpolicy.Finding{{Rule: "mode", Verdict: contentpolicy.Blocked, Detail: "its mode " + c.NewMode + " is not allowed"}}
}

// applyChanges adds and removes the changed paths of a tree.
func applyChanges(tree contentpolicy.Spellings, changes []git.Change) {
	for i := range changes {
		switch {
		case changes[i].Added():
			tree.Count(changes[i].Path, 1)
		case changes[i].Removed():
			tree.Count(changes[i].Path, -1)
		}
	}
}
