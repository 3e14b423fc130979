package edit

import (
	"slices"
	"strings"
)

// normalize makes "\r\n" into "\n".
func normalize(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// text is a text whose line ends are all "\n", and the way back to the original.
type text struct {
	original string
	plain    string
	returns  []int  // offsets in plain of the line ends that are "\r\n" originally
	newline  string // the line end that most lines have
}

func newText(original string) *text {
	t := &text{original: original, plain: normalize(original), newline: "\n"}
	for from := 0; ; {
		next := strings.Index(original[from:], "\r\n")
		if next < 0 {
			break
		}
		t.returns = append(t.returns, from+next-len(t.returns))
		from += next + 2
	}
	if 2*len(t.returns) > strings.Count(t.plain, "\n") {
		t.newline = "\r\n"
	}
	return t
}

// offset gives the place in the original of a place in plain.
func (t *text) offset(at int) int {
	n, _ := slices.BinarySearch(t.returns, at)
	return at + n
}

// find lists where a piece begins in plain, at most limit places. They may
// overlap: a piece that can be meant in two ways is ambiguous even then.
func (t *text) find(piece string, limit int) []int {
	var places []int
	for from := 0; len(places) < limit; {
		next := strings.Index(t.plain[from:], piece)
		if next < 0 {
			break
		}
		places = append(places, from+next)
		from += next + 1
	}
	return places
}

// size is the number of bytes that a replacement takes at most.
func (t *text) size(replacement string) int {
	return len(replacement) + strings.Count(replacement, "\n")*(len(t.newline)-1)
}

// replaceAll replaces every occurrence of old, from the left. What both pieces
// begin and end with is left alone, so that the lines which stay keep their
// ends even where the text has both kinds.
func (t *text) replaceAll(old, replacement string) string {
	before := commonPrefix(old, replacement)
	after := commonSuffix(old[before:], replacement[before:])
	core := strings.ReplaceAll(replacement[before:len(replacement)-after], "\n", t.newline)

	var b strings.Builder
	from, done := 0, 0 // in plain, in the original
	for {
		next := strings.Index(t.plain[from:], old)
		if next < 0 {
			break
		}
		at := from + next
		from = at + len(old)
		b.WriteString(t.original[done:t.offset(at+before)])
		b.WriteString(core)
		done = t.offset(from - after)
	}
	b.WriteString(t.original[done:])
	return b.String()
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// lines gives the numbers of the lines that ascending places are in.
func (t *text) lines(places []int) []int {
	numbers := make([]int, len(places))
	line, from := 1, 0
	for i, at := range places {
		line += strings.Count(t.plain[from:at], "\n")
		numbers[i], from = line, at
	}
	return numbers
}
