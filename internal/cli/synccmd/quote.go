package synccmd

import (
	"strings"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// quoted returns a path as a word of a shell command that can be copied from a hint.
// A path that cannot be printed as it is is escaped, which patterns understand too.
func quoted(path string) string {
	text := console.Printable(path)
	if strings.HasPrefix(text, "-") {
		return "-- " + quotedWord(text)
	}
	return quotedWord(text)
}

func quotedWord(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@+-"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
