package shell

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scan refuses whatever can be told from the characters alone. It never makes a
// command acceptable, that is the parsers' part; but a parser recurses as deep
// as its input nests, and after scan there is nothing left that nests.
func scan(command string) error {
	if err := checkText(command); err != nil {
		return err
	}
	if err := checkBeginning(command); err != nil {
		return err
	}
	s := scanner{text: command}
	return s.run()
}

func checkText(command string) error {
	if len(command) > MaxCommand {
		return refuse(ErrTooLong, MaxCommand)
	}
	if !utf8.ValidString(command) {
		return refuse(ErrNotUTF8, 0)
	}
	if at := strings.IndexFunc(command, isControl); at >= 0 {
		return refuse(ErrControl, at)
	}
	if strings.Trim(command, blanks) == "" {
		return refuse(ErrEmpty, 0)
	}
	return nil
}

const blanks = " \t"

// isControl also refuses Unicode's own line breaks, which no shell honours but
// a reader of a log may see.
func isControl(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029'
}

// checkBeginning looks at the first word as it is written: reserved words and
// assignments are only such when they are not quoted, and Bash parses the
// arguments of some builtins in a way of their own.
func checkBeginning(command string) error {
	start := len(command) - len(strings.TrimLeft(command, blanks))
	word := command[start:]
	if end := strings.IndexAny(word, blanks); end >= 0 {
		word = word[:end]
	}
	switch {
	case word == "!":
		return refuse(ErrNegation, start)
	case slices.Contains(reserved(), word):
		return refuse(ErrReserved, start)
	case slices.Contains(builtins(), word):
		return refuse(ErrBuiltin, start)
	case isAssignment(word):
		return refuse(ErrAssignment, start)
	}
	return nil
}

func reserved() []string {
	return []string{
		"{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "foreach", "function", "if", "in",
		"repeat", "select", "then", "time", "until", "while",
	}
}

// isAssignment knows NAME=, NAME+= and NAME[…]=.
func isAssignment(word string) bool {
	left, _, found := strings.Cut(word, "=")
	name, _, _ := strings.Cut(strings.TrimSuffix(left, "+"), "[")
	return found && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// scanner walks over a command once, in and out of quotes.
type scanner struct {
	text  string
	at    int  // the next byte
	start int  // of the word that at is in
	brace bool // the word has an unquoted "{"
}

func (s *scanner) run() error {
	for s.at < len(s.text) {
		var err error
		switch c := s.text[s.at]; c {
		case ' ', '\t':
			s.start, s.brace = s.at+1, false
		case '\\':
			err = s.escaped()
		case '\'':
			err = s.singleQuoted()
		case '"':
			err = s.doubleQuoted()
		default:
			err = s.bare(c)
		}
		if err != nil {
			return err
		}
		s.at++
	}
	return nil
}

func (s *scanner) escaped() error {
	if s.at+1 == len(s.text) {
		return refuse(ErrEscape, s.at)
	}
	s.at++
	return nil
}

// singleQuoted leaves at on the closing quote.
func (s *scanner) singleQuoted() error {
	length := strings.IndexByte(s.text[s.at+1:], '\'')
	if length < 0 {
		return refuse(ErrQuote, s.at)
	}
	s.at += length + 1
	return nil
}

// doubleQuoted leaves at on the closing quote. A dollar sign or backquote must
// be escaped even where a shell would take it literally.
func (s *scanner) doubleQuoted() error {
	open := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case '"':
			return nil
		case '\\':
			s.at++
		case '$', '`':
			return refuse(s.dollar(c), s.at)
		}
	}
	return refuse(ErrQuote, open)
}

// bare judges a character outside of quotes.
func (s *scanner) bare(c byte) error {
	if reason := s.reason(c); reason != nil {
		return refuse(reason, s.at)
	}
	return nil
}

func (s *scanner) reason(c byte) error {
	switch c {
	case '$', '`':
		return s.dollar(c)
	case '<', '>':
		if s.follows("(") {
			return ErrSubstitution
		}
		return ErrRedirection
	case '|':
		if s.follows("|") {
			return ErrList
		}
		return ErrPipeline
	case '&':
		return s.ampersand()
	case ';':
		return ErrList
	case '(', ')':
		if strings.HasPrefix(strings.TrimLeft(s.text[s.at+1:], blanks), ")") {
			return ErrFunction
		}
		return ErrSubshell
	case '*', '?', '[':
		return ErrGlob
	case '!':
		return ErrHistory
	}
	return s.inWord(c)
}

// inWord judges the characters that are special only at some places of a word.
func (s *scanner) inWord(c byte) error {
	before := s.text[s.start:s.at]
	switch {
	case c == '#' && before == "":
		return ErrComment
	case c == '~' && isTildePlace(before):
		return ErrTilde
	case c == '{':
		s.brace = true
	case s.brace && (c == ',' || c == '.' && s.follows(".")):
		return ErrBrace
	}
	return nil
}

// isTildePlace tells whether a tilde may be expanded after what stands before
// it in its word. Bash expands also in NAME=~ and in lists like a:~ there.
// HEAD~1 is no such place.
func isTildePlace(before string) bool {
	before = strings.TrimRight(before, `"'`)
	return before == "" || strings.HasSuffix(before, "=") || strings.HasSuffix(before, ":")
}

func (s *scanner) dollar(c byte) error {
	if c == '`' || s.follows("(") && !s.follows("((") {
		return ErrSubstitution
	}
	return ErrExpansion
}

func (s *scanner) ampersand() error {
	switch {
	case s.follows("&"):
		return ErrList
	case s.follows(">"):
		return ErrRedirection
	}
	return ErrBackground
}

// follows tells whether text stands directly after the character at hand.
func (s *scanner) follows(text string) bool {
	return strings.HasPrefix(s.text[s.at+1:], text)
}
