package diff

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// DevNull is the name of a text that is not there: the old one of a new file,
// the new one of a removed file.
const DevNull = "/dev/null"

// libraryHeader is how many lines the library writes before the first hunk.
const libraryHeader = 3

// Unified returns the unified diff that turns a into b: "" if they are equal,
// one line that says so if one of them is not text. A diff of more than limit
// bytes is cut and ends in a line that tells how much is missing; a limit of 0
// or less is none.
func Unified(oldName, newName string, a, b []byte, limit int) string {
	if bytes.Equal(a, b) {
		return ""
	}
	out := &output{limit: limit}
	if isBinary(a) || isBinary(b) {
		out.line(fmt.Sprintf("Binary files %s and %s differ\n", header(oldName), header(newName)))
		return out.String()
	}
	out.line("--- " + header(oldName) + "\n")
	out.line("+++ " + header(newName) + "\n")
	for _, line := range bodyLines(diff.Diff("old", a, "new", b)) {
		out.changed(line)
	}
	return out.String()
}

// bodyLines splits a diff of the library into lines, without its header. The
// remark that a line has no newline stays with its line.
func bodyLines(text []byte) []string {
	const remark = "\\ No newline at end of file\n"
	lines := strings.SplitAfter(string(text), "\n")[libraryHeader:]
	var body []string
	for _, line := range lines {
		if line == remark && len(body) > 0 {
			body[len(body)-1] += line
		} else if line != "" {
			body = append(body, line)
		}
	}
	return body
}

// isBinary follows the other tools: text has no NUL.
func isBinary(text []byte) bool { return bytes.IndexByte(text, 0) >= 0 }

// header keeps a file's name on its line. A name with blanks ends in a tab, so
// that readers know where it ends.
func header(name string) string {
	odd := func(r rune) bool { return r == '"' || r == '\\' || !unicode.IsPrint(r) }
	if !utf8.ValidString(name) || strings.ContainsFunc(name, odd) {
		return strconv.Quote(name)
	}
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

// output is a diff that does not outgrow its limit.
type output struct {
	strings.Builder
	limit   int
	cut     bool
	missing int // changed lines that did not fit
}

// String returns the diff, with a last line on what was cut. Readers of diffs
// skip lines that begin with a backslash.
func (o *output) String() string {
	if !o.cut {
		return o.Builder.String()
	}
	return o.Builder.String() + fmt.Sprintf("\\ Diff cut here: %d more changed lines\n", o.missing)
}

// line writes a whole line if it fits, and nothing after one that did not.
func (o *output) line(text string) bool {
	if o.limit > 0 && o.Len()+len(text) > o.limit {
		o.cut = true
	}
	if !o.cut {
		o.WriteString(text)
	}
	return !o.cut
}

// changed writes a line of the body and counts it if it is a change that does
// not fit.
func (o *output) changed(text string) {
	if !o.line(text) && (text[0] == '-' || text[0] == '+') {
		o.missing++
	}
}
