package console

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// noteWidth is how long a note may be to stand in a table.
const noteWidth = 40

// Footnotes takes long notes, of which many rows share one, out of a table.
type Footnotes []string

// Mark is what the row shows.
func (f *Footnotes) Mark(note string) string {
	if len(note) <= noteWidth {
		return note
	}
	at := slices.Index(*f, note)
	if at < 0 {
		at = len(*f)
		*f = append(*f, note)
	}
	return fmt.Sprintf("see (%d)", at+1)
}

// Print writes the notes that rows refer to.
func (f *Footnotes) Print(w io.Writer) {
	for i, note := range *f {
		fmt.Fprintf(w, "(%d) %s\n", i+1, Joined(note))
	}
}

// Wrapped breaks text between words; a word is never broken.
func Wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
