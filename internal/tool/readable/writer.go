package readable

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// writer puts text together: runs of blanks become one, blocks begin on lines
// of their own.
type writer struct {
	b      strings.Builder
	breaks int    // line breaks owed before the next text
	space  bool   // a blank owed before the next text
	prefix string // owed at the beginning of the line: "# ", "- "
	lists  int    // nesting of lists
}

// maxIndent bounds how far nested lists are moved in.
const maxIndent = 6

func (w *writer) String() string {
	return strings.TrimRight(w.b.String(), " \n")
}

// text adds running text, or as it is where white space counts.
func (w *writer) text(text string, verbatim bool) {
	if verbatim {
		w.settle()
		w.b.WriteString(clean(text))
		return
	}
	words := strings.Fields(clean(text))
	if startsBlank(text) {
		w.space = true
	}
	if len(words) == 0 {
		return
	}
	w.inline(strings.Join(words, " "))
	last := text[len(text)-1]
	w.space = last == ' ' || last == '\n' || last == '\t' || last == '\r'
}

func startsBlank(text string) bool {
	return text != "" && strings.ContainsRune(" \n\t\r\f", rune(text[0]))
}

// clean drops control characters.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// inline writes what belongs to the line, after what is owed.
func (w *writer) inline(text string) {
	w.settle()
	w.b.WriteString(text)
}

// glue writes right after the last text; what is owed stays owed.
func (w *writer) glue(text string) {
	if w.breaks == 0 {
		w.b.WriteString(text)
		return
	}
	w.inline(text)
}

// settle writes the breaks, blanks and marks that are owed.
func (w *writer) settle() {
	switch {
	case w.b.Len() == 0:
	case w.breaks > 0:
		w.b.WriteString(strings.Repeat("\n", min(w.breaks, 2)))
	case w.space:
		w.b.WriteByte(' ')
	}
	if w.breaks > 0 || w.b.Len() == 0 {
		w.b.WriteString(w.prefix)
		w.prefix = ""
	}
	w.breaks, w.space = 0, false
}

func (w *writer) owe(breaks int) { w.breaks = max(w.breaks, breaks) }

func (w *writer) open(a atom.Atom) {
	switch a {
	case atom.Br:
		w.owe(1)
	case atom.Hr:
		w.owe(2)
	case atom.Ul, atom.Ol:
		w.owe(listBreaks(w.lists))
		w.lists++
	case atom.Li:
		w.owe(1)
		w.prefix = strings.Repeat("  ", min(max(w.lists-1, 0), maxIndent)) + "- "
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.owe(2)
		w.prefix = strings.Repeat("#", int(a.String()[1]-'0')) + " "
	case atom.Td, atom.Th:
		if w.breaks == 0 && w.b.Len() > 0 {
			w.b.WriteString(" |")
			w.space = true
		}
	default:
		w.owe(blockBreaks(a))
	}
}

func (w *writer) close(a atom.Atom) {
	switch a {
	case atom.Ul, atom.Ol:
		w.lists = max(w.lists-1, 0)
		w.owe(listBreaks(w.lists))
		w.prefix = ""
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.owe(2)
		w.prefix = ""
	case atom.Td, atom.Th:
	default:
		w.owe(blockBreaks(a))
	}
}

func listBreaks(nested int) int {
	if nested > 0 {
		return 1
	}
	return 2
}

// blockBreaks is how many line breaks surround an element; 0 if it is part of
// running text.
func blockBreaks(a atom.Atom) int {
	switch a {
	case atom.P, atom.Pre, atom.Blockquote, atom.Table, atom.Section, atom.Article, atom.Main, atom.Header, atom.Figure, atom.Dl, atom.Form, atom.Fieldset, atom.Details:
		return 2
	case atom.Div, atom.Tr, atom.Dt, atom.Dd, atom.Caption, atom.Figcaption, atom.Address, atom.Summary, atom.Li, atom.Body, atom.Option:
		return 1
	}
	return 0
}
