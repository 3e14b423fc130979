package dockercli

import (
	"strings"
)

// Lengths of names and ids, in bytes.
const (
	maxName = 63 // that of a sandbox
	fullID  = 64
)

// defaultPath is the variable that engines set for images without one.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// isName reports whether a container may have this name. It uses no regular
// expression: compiling one takes longer than the rest of a short command.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return len(s) > 1
}

// isID reports whether s is an id or the beginning of one.
func isID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || '9' < c) && (c < 'a' || 'f' < c) {
			return false
		}
	}
	return 0 < len(s) && len(s) <= fullID
}

// variableLine parses a line of a file of variables or labels. It returns ""
// for a comment or an empty line, and false for a name with white space.
func variableLine(line string) (variable, name string, ok bool) {
	line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
	if line == "" || line[0] == '#' {
		return "", "", true
	}
	name, _, _ = strings.Cut(line, "=")
	return line, name, name != "" && !strings.ContainsAny(name, " \t")
}

// startTime returns the start time in a process's stat file, which tells
// processes apart that have the same id one after the other. It is "" for a
// process that has ended.
func startTime(stat string) string {
	// The name in parentheses may contain anything; what follows is numbers.
	rest := strings.TrimLeft(stat[strings.LastIndexByte(stat, ')')+1:], " ")
	const start = 19
	if strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X") {
		return ""
	}
	for range start {
		_, rest, _ = strings.Cut(rest, " ")
	}
	field, _, _ := strings.Cut(strings.TrimRight(rest, "\n"), " ")
	return field
}
