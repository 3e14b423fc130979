// Package publicerr removes paths of the host from messages for callers who share a
// service with others.
package publicerr

import (
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// hostPath matches absolute paths: a slash at the beginning of a word, and what
// follows it up to a blank, a quote or the end of the sentence.
var hostPath = lazyregexp.New("(^|[\\s\"'`(=,:\\[<])(~?/[^\\s\"'`()\\[\\]<>,;]+)")

// Placeholder replaces a path of the host.
const Placeholder = "[host path]"

// visiblePrefixes are prefixes of paths that are kept: those inside a sandbox and
// those of the HTTP interface.
var visiblePrefixes = []string{"/workspace", "/agent", "/tmp", "/api", "/openapi.json", "/v1"}

// Text returns a message without the paths of the host.
func Text(message string) string {
	if !strings.Contains(message, "/") {
		return message
	}
	return hostPath.ReplaceAllStringFunc(message, func(found string) string {
		at := strings.IndexAny(found, "~/")
		if strings.HasPrefix(found, "://") {
			at = len("://") // of a URL, of which only file names are hidden
		}
		path := strings.TrimRight(found[at:], ".:")
		if isVisible(path) || at > 1 && !strings.HasPrefix(path, "/") {
			return found
		}
		return found[:at] + Placeholder + found[at+len(path):]
	})
}

// plainSuffix matches what may follow a visible prefix.
var plainSuffix = lazyregexp.New(`^(/[\w.@+%~-]+)*/?$`)

func isVisible(path string) bool {
	for _, prefix := range visiblePrefixes {
		if rest, ok := strings.CutPrefix(path, prefix); ok && !strings.Contains(rest, "..") && plainSuffix.MatchString(rest) {
			return true
		}
	}
	return path == "/"
}
