package diff

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Context is the number of unchanged lines shown around a change.
const Context = 3

// DevNull is the name of a text that is not there: the old one of a new file,
// the new one of a removed file.
const DevNull = "/dev/null"

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
	t := compareTexts(a, b)
	for _, h := range group(t.changes()) {
		out.hunk(t, h)
	}
	return out.String()
}

// Stat counts the lines that a unified diff of a and b takes out and puts in.
func Stat(a, b []byte) (removed, added int) {
	for _, c := range compareTexts(a, b).changes() {
		removed += c.a1 - c.a0
		added += c.b1 - c.b0
	}
	return removed, added
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

// group puts changes into one hunk whose contexts would touch.
func group(changes []change) [][]change {
	var hunks [][]change
	for _, c := range changes {
		if last := len(hunks) - 1; last >= 0 {
			h := hunks[last]
			if c.a0-h[len(h)-1].a1 <= 2*Context {
				hunks[last] = append(h, c)
				continue
			}
		}
		hunks = append(hunks, []change{c})
	}
	return hunks
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

func (o *output) hunk(t *texts, h []change) {
	first, last := h[0], h[len(h)-1]
	before := min(Context, first.a0)
	after := min(Context, len(t.a)-last.a1)
	o.line(fmt.Sprintf("@@ -%s +%s @@\n",
		span(first.a0-before, last.a1+after), span(first.b0-before, last.b1+after)))
	at := first.a0 - before
	for _, c := range h {
		o.lines(" ", t.a[at:c.a0])
		o.lines("-", t.a[c.a0:c.a1])
		o.lines("+", t.b[c.b0:c.b1])
		at = c.a1
	}
	o.lines(" ", t.a[at:at+after])
}

// span writes a range of lines, which are counted from 1. An empty one is named
// by the line before it, and a single line needs no count.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return strconv.Itoa(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func (o *output) lines(mark string, lines [][]byte) {
	for _, line := range lines {
		text := mark + string(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			text += "\n\\ No newline at end of file\n"
		}
		if !o.line(text) && mark != " " {
			o.missing++
		}
	}
}
