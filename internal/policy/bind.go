package policy

import (
	"path"
	"slices"
	"strings"
)

// Bind is one entry of docker.binds taken apart, each part as written.
type Bind struct {
	Source  string
	Target  string
	Options string // "" if none were written
}

// SplitBind takes "source:target[:options]" apart. It reports false if there
// is no separator. White space and backslashes are parts of names.
func SplitBind(spec string) (Bind, bool) {
	drive := drivePrefix(spec)
	source, rest, ok := strings.Cut(spec[drive:], ":")
	if !ok {
		return Bind{}, false
	}
	target, options, _ := strings.Cut(rest, ":")
	return Bind{Source: spec[:drive] + source, Target: target, Options: options}, true
}

// drivePrefix is the length of a Windows drive before its slash: the colon of
// "C:\" does not end the source.
func drivePrefix(spec string) int {
	isLetter := len(spec) >= 3 && isAlnum(spec[0]) && (spec[0] < '0' || spec[0] > '9')
	if isLetter && spec[1] == ':' && (spec[2] == '\\' || spec[2] == '/') {
		return len("C:")
	}
	return 0
}

// NormalizePath removes what does not change where an absolute path leads as
// text: ".", "..", double and trailing slashes.
func NormalizePath(p string) string { return path.Clean(p) }

// within tells whether a normalised path is a directory or lies below it.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// lastPerTarget keeps, of several items for one target, the last.
func lastPerTarget[T any](items []T, target func(T) string) []T {
	last := map[string]int{}
	for i, item := range items {
		last[target(item)] = i
	}
	var kept []T
	for i, item := range items {
		if last[target(item)] == i {
			kept = append(kept, item)
		}
	}
	return kept
}

// bindTarget identifies the place that a bind takes. An entry that cannot be
// understood takes a place of its own; validation refuses it.
func bindTarget(spec string) string {
	if b, ok := SplitBind(spec); ok {
		return NormalizePath(b.Target)
	}
	return spec
}

// bindOptions are the options that a bind may have. Others, such as mount
// propagation, are refused rather than ignored.
var bindOptions = []string{"ro", "rw", "z", "Z"}

// options lists the options of a bind.
func (b Bind) options() []string {
	if b.Options == "" {
		return nil
	}
	return strings.Split(b.Options, ",")
}

// ReadOnly tells whether the bind forbids writing.
func (b Bind) ReadOnly() bool { return slices.Contains(b.options(), "ro") }

// relabel is the SELinux option of the bind: "", "z" or "Z".
func (b Bind) relabel() string {
	for _, option := range b.options() {
		if option == "z" || option == "Z" {
			return option
		}
	}
	return ""
}
