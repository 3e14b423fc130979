// Package contentpolicy has the rules for what may leave a sandbox: paths, links,
// protected files and the words for a verdict. The relay applies them to commits,
// the gate to files. It reads nothing; package leaks below it finds secrets.
package contentpolicy

import (
	"fmt"
	"strings"
)

// Verdict is what a finding means.
type Verdict string

// The verdicts, from the worst.
const (
	Blocked  Verdict = "blocked"  // never leaves a sandbox
	Approval Verdict = "approval" // leaves when a person says so
	Allowed  Verdict = "allowed"  // of a protection: the path needs none
)

// Finding is one thing that is wrong, and where.
type Finding struct {
	Rule    string  `json:"rule"`
	Verdict Verdict `json:"verdict"`
	Commit  string  `json:"commit,omitempty"` // "" if it is of no commit, or of all together
	Path    string  `json:"path,omitempty"`
	Detail  string  `json:"detail,omitempty"`
}

func (f *Finding) String() string {
	var where []string
	if f.Commit != "" {
		where = append(where, "commit "+f.Commit[:min(12, len(f.Commit))])
	}
	if f.Path != "" {
		where = append(where, fmt.Sprintf("%q", f.Path))
	}
	if where == nil {
		where = []string{"all changes together"}
	}
	return fmt.Sprintf("%s: %s (%s)", strings.Join(where, ", "), f.Detail, f.Rule)
}
