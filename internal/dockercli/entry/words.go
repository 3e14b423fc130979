package entry

import "strings"

// MaxName is that of a sandbox, FullID the length of an id.
const (
	MaxName = 63
	FullID  = 64
)

// DefaultPath is where engines look for programs in images that do not say.
const DefaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// IsName tells whether a container may be called so. It is written out, as is
// IsID, because to compile an expression takes longer than all else that a short
// command needs here.
func IsName(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return len(s) > 1
}

// IsID tells whether this may be an id, or the beginning of one.
func IsID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || '9' < c) && (c < 'a' || 'f' < c) {
			return false
		}
	}
	return 0 < len(s) && len(s) <= FullID
}

// Line reads a line of a file of variables or labels: it is "" if it says
// nothing. A name with white space is not one.
func Line(line string) (entry, name string, ok bool) {
	line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
	if line == "" || line[0] == '#' {
		return "", "", true
	}
	name, _, _ = strings.Cut(line, "=")
	return line, name, name != "" && !strings.ContainsAny(name, " \t")
}

// Born tells the kernel's processes apart that have the same number one after the
// other: by what it says in a process's stat, which is when that was started. It
// is "" of a process that has ended.
func Born(stat string) string {
	// The name in the middle may contain anything; what follows is numbers.
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

// IsBirth tells whether this is the birth of a process in a run of the kernel.
func IsBirth(birth, boot, stat string) bool {
	run, start, ok := strings.Cut(birth, ":")
	return ok && start != "" && run == strings.TrimRight(boot, "\n") && start == Born(stat)
}
