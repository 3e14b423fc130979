package contentpolicy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// pathRule is one thing that a path must not be. A path that breaks one means
// different files on different systems, or shows itself as another one.
type pathRule struct {
	name   string
	detail string
	broken func(string) bool
}

// Path returns what is wrong with a path itself, whatever file has it.
func Path(path string) (found []Finding) {
	for _, rule := range pathRules() {
		if rule.broken(path) {
			found = append(found, Finding{Rule: rule.name, Verdict: Blocked, Path: path, Detail: rule.detail})
		}
	}
	return found
}

func pathRules() []pathRule {
	return []pathRule{
		{"path-encoding", "the path is not UTF-8", func(p string) bool { return !utf8.ValidString(p) }},
		{"path-characters", "the path has control or invisible characters", func(p string) bool { return strings.ContainsFunc(p, invisible) }},
		{"path-separator", "the path has a backslash or a colon, which other systems take apart", func(p string) bool { return strings.ContainsAny(p, `\:`) }},
		{"path-normal-form", "the path is not in Unicode's composed form", func(p string) bool { return !norm.NFC.IsNormalString(p) }},
		{"path-element", "a part of the path is empty, a dot, or ends with a dot or a space", anyElement(isOddElement)},
		{"path-git", "a part of the path is git's own directory", anyElement(isGitDir)},
		{"path-device", "a part of the path is a device on other systems", anyElement(isDevice)},
	}
}

func invisible(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || r == '\u2800' || r == '\u3164' || r == '\u034f'
}

func anyElement(odd func(string) bool) func(string) bool {
	return func(path string) bool {
		for element := range strings.SplitSeq(path, "/") {
			if odd(element) {
				return true
			}
		}
		return false
	}
}

func isOddElement(e string) bool {
	return e == "" || e == "." || e == ".." || strings.HasSuffix(e, ".") || strings.HasSuffix(e, " ") || len(e) > 255
}

// isGitDir reports .git and the short name that Windows gives it.
func isGitDir(e string) bool {
	folded := Fold(e)
	return folded == ".git" || folded == "git~1"
}

func isDevice(e string) bool {
	name, _, _ := strings.Cut(Fold(e), ".")
	name = strings.TrimRight(name, " ")
	switch name {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	return len(name) == 4 && (strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt")) && name[3] >= '1' && name[3] <= '9'
}

// Fold returns what a path is on a system that ignores case and how a character is
// composed.
func Fold(path string) string {
	if plainLower(path) {
		return path
	}
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(path)))
}

func plainLower(path string) bool {
	for i := range len(path) {
		if c := path[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}
