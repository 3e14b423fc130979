package console

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/config"
)

// OrEmpty returns an empty list instead of nil, for JSON.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// OriginText says where a value came from, as a place to go to.
func OriginText(o config.Origin) string {
	switch {
	case o.Line > 0:
		return fmt.Sprintf("%s (line %d)", o.Path, o.Line)
	case o.Path != "":
		return o.Path
	case o.Source == config.FromProject:
		return "./atoll.json5, which is not trusted and only narrows"
	case o.Source == "derived":
		return "built-in default, below the state directory"
	default:
		return "built-in default"
	}
}

// SizeText is a number of bytes as people say it.
func SizeText(n int64) string {
	const step = 1000
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	value := float64(n)
	unit := -1
	for value >= step && unit < 3 {
		value /= step
		unit++
	}
	return fmt.Sprintf("%.1f %cB", value, "kMGT"[unit])
}

// OrDash returns "-" instead of an empty text.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// IsInteractive reports whether input comes from a person at a terminal, who
// has not been asked for any.
func IsInteractive(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// FirstOf is what ended a command, or else what went wrong after it.
func FirstOf(errs ...error) error { return cmp.Or(errs...) }
