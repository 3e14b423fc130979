package take

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

const heads = "refs/heads/"

// maxBranch bounds the name of a branch.
const maxBranch = 200

// isBranchRef reports whether text is the full name of a branch that git accepts.
func isBranchRef(text string) bool {
	name, ok := strings.CutPrefix(text, heads)
	return ok && isBranch(name)
}

// isBranch applies git's rules for branch names. Bytes above ASCII are refused
// too: what is shown must be what is named.
func isBranch(name string) bool {
	if name == "" || len(name) > maxBranch || name == "@" || name == "HEAD" || name[0] == '-' || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsAny(name, " ~^:?*[\\\"'`$;&|<>(){}!#") {
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element[0] == '.' || strings.HasSuffix(element, ".lock") {
			return false
		}
	}
	return true
}

// checkBranch refuses a name that a person gave and git would not accept.
func checkBranch(name string) error {
	if isBranch(name) {
		return nil
	}
	return errhint.With(fmt.Errorf("%.100q cannot name a branch", name), "use letters, digits and . _ - /, for example atoll/fix")
}

// keptRef is the ref that holds what was taken for a branch. It has one element
// after the slug, so that no two of them collide.
func (w *Workspace) keptRef(branch string) string {
	return "refs/atoll/" + w.Slug + "/" + strings.NewReplacer("%", "%25", "/", "%2f").Replace(branch)
}
