package json5

import (
	"bytes"
	"sort"
	"unicode/utf8"
)

// Position is a place in a source.
type Position struct {
	Offset int // in bytes, from 0
	Line   int // from 1
	Column int // in characters, from 1
}

// mark ties a place in the JSON to the place in the source it was made from.
// A copied stretch runs along byte by byte; a made one (an escape, a quote that
// the source did not have) stands for one place as a whole.
type mark struct {
	json, src int
	made      bool
}

// sourceOffset maps an offset in the JSON back to the source.
func (d *Document) sourceOffset(json int) int {
	json = max(0, min(json, len(d.JSON)-1))
	next := sort.Search(len(d.marks), func(i int) bool { return d.marks[i].json > json })
	if next == 0 {
		return 0
	}
	m := d.marks[next-1]
	if m.made {
		return m.src
	}
	return m.src + json - m.json
}

var byteOrderMark = []byte("\uFEFF")

// lines finds line and column of an offset. Lines end as in an editor: LF, CRLF
// or CR.
type lines struct {
	src    []byte
	starts []int
}

func newLines(src []byte) lines {
	first := 0
	if bytes.HasPrefix(src, byteOrderMark) {
		first = len(byteOrderMark) // no editor counts it as a column
	}
	starts := []int{first}
	for i, c := range src {
		crlf := c == '\r' && i+1 < len(src) && src[i+1] == '\n'
		if c == '\n' || c == '\r' && !crlf {
			starts = append(starts, i+1)
		}
	}
	return lines{src, starts}
}

func (l lines) position(offset int) Position {
	offset = max(0, min(offset, len(l.src)))
	line := max(1, sort.SearchInts(l.starts, offset+1))
	start := min(l.starts[line-1], offset)
	return Position{Offset: offset, Line: line, Column: utf8.RuneCount(l.src[start:offset]) + 1}
}
