package textcheck

import (
	"fmt"
	pathpkg "path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config/wording"
)

// optionNames checks the names of options that are known by them.
func optionNames(names ...string) func(text string) (message, hint string) {
	return func(text string) (message, hint string) {
		if slices.Contains(names, text) {
			return "", ""
		}
		return "unknown option", "known options: " + strings.Join(names, ", ")
	}
}

// checkTreeTarget wants a clean path in which no part of the system is.
func checkTreeTarget(text string) (message, hint string) {
	if message, hint = checkWorkdir(text); message != "" {
		return message, hint
	}
	if pathpkg.Clean(text) != text {
		return "must be a path without . and .. and double slashes", "write " + wording.Quote(pathpkg.Clean(text))
	}
	return "", ""
}

// UlimitNames are the limits that container engines know.
var UlimitNames = []string{
	"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio",
	"rttime", "sigpending", "stack",
}

func checkUlimitName(text string) (message, hint string) {
	if slices.Contains(UlimitNames, text) {
		return "", ""
	}
	if near := wording.Nearest(text, UlimitNames); near != "" {
		return fmt.Sprintf("unknown limit, did you mean %q?", near), "write " + near
	}
	return "unknown limit", "known limits: " + strings.Join(UlimitNames, ", ")
}
