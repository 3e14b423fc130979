package patch

import (
	"strings"

	"github.com/atoll-run/atoll/internal/tool/edit"
)

const byteOrderMark = "\ufeff"

// document is a file as lines, each with the line end that it has.
type document struct {
	mark    string // a byte order mark, which is not part of the first line
	lines   []string
	newline string // what most lines end in
	views   [forms]*view
	budget  *budget
}

func newDocument(data []byte, b *budget) (*document, error) {
	if len(data) > MaxFileBytes {
		return nil, ErrFileTooLarge
	}
	d := &document{newline: "\n", budget: b}
	text := string(data)
	if rest, found := strings.CutPrefix(text, byteOrderMark); found {
		d.mark, text = byteOrderMark, rest
	}
	lineFeeds, returns := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	if lineFeeds >= MaxFileLines {
		return nil, ErrFileTooLarge
	}
	if 2*returns > lineFeeds {
		d.newline = "\r\n"
	}
	d.lines = strings.SplitAfter(text, "\n")
	if last := len(d.lines) - 1; d.lines[last] == "" {
		d.lines = d.lines[:last]
	}
	return d, nil
}

// text is a line without its end.
func (d *document) text(i int) string {
	line, ended := strings.CutSuffix(d.lines[i], "\n")
	if ended {
		line = strings.TrimSuffix(line, "\r")
	}
	return line
}

// splice is a run of lines to take out, and the lines to put in its place.
type splice struct {
	at, remove int
	insert     []string
}

// with returns the text after some splices, which are in order. Lines that stay
// keep their ends, new ones get the common one, and whether the last line has
// an end stays as it was.
func (d *document) with(splices []splice) []byte {
	var out []string
	next := 0
	for _, s := range splices {
		out = append(out, d.lines[next:s.at]...)
		for _, text := range s.insert {
			out = append(out, text+d.newline)
		}
		next = s.at + s.remove
	}
	out = append(out, d.lines[next:]...)
	return []byte(d.mark + strings.Join(d.finish(out), ""))
}

// finish puts a line end where a last line without one is no longer the last,
// and takes it from the new last line. An empty line is nothing but its end, and
// keeps it.
func (d *document) finish(lines []string) []string {
	if len(d.lines) == 0 || len(lines) == 0 || strings.HasSuffix(d.lines[len(d.lines)-1], "\n") {
		return lines
	}
	last := len(lines) - 1
	for i, line := range lines[:last] {
		if !strings.HasSuffix(line, "\n") {
			lines[i] = line + d.newline
		}
	}
	if text, ended := strings.CutSuffix(lines[last], "\n"); ended && strings.TrimSuffix(text, "\r") != "" {
		lines[last] = strings.TrimSuffix(text, "\r")
	}
	return lines
}

// form is a way to see a line in which small differences vanish.
type form int

// The forms of lines of hunks, then those of headers. A header only says where
// to look, so its indentation does not matter.
const (
	asIs form = iota
	endTrimmed
	endTrimmedPlain
	trimmed
	trimmedPlain
	forms
)

func (f form) of(line string) string {
	switch f {
	case endTrimmed:
		return strings.TrimRight(line, " \t\r")
	case endTrimmedPlain:
		return strings.TrimRight(edit.NormalizePunctuation(line), " \t\r")
	case trimmed:
		return strings.TrimSpace(line)
	case trimmedPlain:
		return strings.TrimSpace(edit.NormalizePunctuation(line))
	}
	return line
}

// view is a document in one form: equal lines have equal numbers.
type view struct {
	numbers map[string]int
	lines   []int
}

func (d *document) view(f form) *view {
	if d.views[f] == nil {
		v := &view{numbers: map[string]int{}, lines: make([]int, len(d.lines))}
		for i := range d.lines {
			line := f.of(d.text(i))
			number, known := v.numbers[line]
			if !known {
				number = len(v.numbers)
				v.numbers[line] = number
			}
			v.lines[i] = number
		}
		d.views[f] = v
	}
	return d.views[f]
}
