package contentpolicy

import (
	"path"
	"strings"
)

// maxTarget is the longest target of a symbolic link that is accepted.
const maxTarget = 1024

// LinkProblem says why a link at path from may not have this target, or "". Elements before a ".." may be
// links themselves, so a target may only climb at its beginning.
func LinkProblem(from, target string) string {
	switch {
	case target == "" || len(target) > maxTarget:
		return "the link has no usable target"
	case strings.ContainsFunc(target, invisible) || strings.ContainsAny(target, `\:`):
		return "the link's target has characters that are not allowed"
	case path.IsAbs(target):
		return "the link leads to an absolute path"
	}
	climbed, down := 0, false
	for element := range strings.SplitSeq(target, "/") {
		switch {
		case element == "..":
			climbed++
			if down {
				return "the link climbs after it descended"
			}
		case isGitDir(element):
			return "the link leads into git's own directory"
		case element != "." && element != "":
			down = true
		}
	}
	if climbed > strings.Count(from, "/") {
		return "the link leads out of the project"
	}
	return ""
}
