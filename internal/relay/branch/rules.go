package branch

import "strings"

// rule is one thing that a key must not be. Together they are narrower than what
// git allows for names of branches.
type rule struct {
	why    string
	broken func(string) bool
}

func rules() []rule {
	return []rule{
		{"it is empty", func(s string) bool { return s == "" }},
		{"it is too long", func(s string) bool { return len(s) > MaxLength }},
		{"it has a character that is not allowed", func(s string) bool { return strings.ContainsFunc(s, isNotAllowed) }},
		{"a part of it does not begin with a letter or a digit", anyPart(badStart)},
		{"a part of it ends with a dot", anyPart(func(p string) bool { return strings.HasSuffix(p, ".") })},
		{"a part of it ends with .lock", anyPart(func(p string) bool { return strings.HasSuffix(strings.ToLower(p), ".lock") })},
		{"it has two dots in a row", func(s string) bool { return strings.Contains(s, "..") }},
	}
}

func isNotAllowed(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/", r)
}

func anyPart(bad func(string) bool) func(string) bool {
	return func(s string) bool {
		for part := range strings.SplitSeq(s, "/") {
			if bad(part) {
				return true
			}
		}
		return false
	}
}

func badStart(part string) bool {
	return part == "" || strings.ContainsRune("._-", rune(part[0]))
}
