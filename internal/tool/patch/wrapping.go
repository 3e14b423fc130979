package patch

import (
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// heredoc is the first line of a here-document: <<'EOF', perhaps with the
// command that it is for.
var heredoc = lazyregexp.New(`^(?:(?:apply_patch|applypatch|apply-patch|cat)\s+)?<<-?\s*(?:'(\w+)'|"(\w+)"|(\w+))$`)

// maxWrappings is how many wrappings are taken off: a here-document in a fence.
const maxWrappings = 2

// numbered are lines and the number of the first one.
type numbered struct {
	lines []string
	first int
}

// unwrap takes off the blank lines, code fences and here-documents that models
// put around a patch.
func (n numbered) unwrap() numbered {
	n = n.trim()
	for range maxWrappings {
		if len(n.lines) < 2 || !wraps(strings.TrimSpace(n.lines[0]), strings.TrimSpace(n.lines[len(n.lines)-1])) {
			break
		}
		n = numbered{n.lines[1 : len(n.lines)-1], n.first + 1}.trim()
	}
	return n
}

func (n numbered) trim() numbered {
	for len(n.lines) > 0 && strings.TrimSpace(n.lines[0]) == "" {
		n = numbered{n.lines[1:], n.first + 1}
	}
	for len(n.lines) > 0 && strings.TrimSpace(n.lines[len(n.lines)-1]) == "" {
		n.lines = n.lines[:len(n.lines)-1]
	}
	return n
}

// wraps tells whether two lines are the opening and the end of a wrapping.
func wraps(first, last string) bool {
	if fence := strings.TrimRight(first, "abcdefghijklmnopqrstuvwxyz-_"); fence == "```" || fence == "~~~" {
		return last == fence
	}
	for i, word := range heredoc.FindStringSubmatch(first) {
		if i > 0 && word != "" {
			return last == word
		}
	}
	return false
}
