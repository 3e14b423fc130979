package patch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// The markers of the format. After a colon there is a path.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	moveTo     = "*** Move to:"
	endOfFile  = "*** End of File"
	hunkHeader = "@@"
	anyMarker  = "***"
)

func fileMarkers() map[string]Kind {
	return map[string]Kind{"*** Add File:": Add, "*** Delete File:": Delete, "*** Update File:": Update}
}

// lineNumbers is the header that a unified diff has here.
var lineNumbers = lazyregexp.New(`^-\d+(,\d+)? \+\d+(,\d+)? @@`)

// Parse reads a patch. It stops at the first line that is not of the format,
// with a *SyntaxError; paths that exclude each other are reported all at once.
func Parse(text string) (*Patch, error) {
	if len(text) > MaxBytes {
		return nil, ErrTooLarge
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	body, err := between(numbered{lines, 1}.unwrap())
	if err != nil {
		return nil, err
	}
	p := parser{numbered: body}
	if err := p.patch(); err != nil {
		return nil, err
	}
	if errs := checkDistinct(p.changes); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Patch{Changes: p.changes}, nil
}

// between returns the lines between the first marker and the last.
func between(n numbered) (numbered, error) {
	last := len(n.lines) - 1
	if last < 0 {
		return n, &SyntaxError{1, ErrEmpty}
	}
	if strings.TrimSpace(n.lines[0]) != beginPatch {
		return n, &SyntaxError{n.first, fmt.Errorf("want %q", beginPatch)}
	}
	if last == 0 || strings.TrimSpace(n.lines[last]) != endPatch {
		return n, &SyntaxError{n.first + last, fmt.Errorf("want %q as the last line", endPatch)}
	}
	return numbered{n.lines[1:last], n.first + 1}, nil
}

// parser reads lines one after the other.
type parser struct {
	numbered
	at      int // the next line
	changes []Change
	hunks   int // of all changes
}

func (p *parser) more() bool { return p.at < len(p.lines) }

func (p *parser) line() string { return p.lines[p.at] }

// number of the next line in the text of the patch.
func (p *parser) number() int { return p.first + p.at }

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{p.number(), fmt.Errorf(format, args...)}
}

func (p *parser) patch() error {
	for p.skipBlank(); p.more(); p.skipBlank() {
		if len(p.changes) == MaxFiles {
			return p.fail("%w", ErrTooManyFiles)
		}
		if err := p.change(); err != nil {
			return err
		}
	}
	if len(p.changes) == 0 {
		return p.fail("%w", ErrEmpty)
	}
	return nil
}

func (p *parser) skipBlank() {
	for p.more() && strings.TrimSpace(p.line()) == "" {
		p.at++
	}
}

// change reads what happens to one file.
func (p *parser) change() error {
	c := Change{Line: p.number()}
	for marker, kind := range fileMarkers() {
		if rest, found := strings.CutPrefix(strings.TrimSpace(p.line()), marker); found {
			c.Kind, c.Path = kind, strings.TrimSpace(rest)
		}
	}
	if c.Kind == "" {
		return p.unexpected(`a line like "*** Update File: path"`)
	}
	if err := checkPath(c.Path); err != nil {
		return p.fail("%w: %q", err, shorten(c.Path))
	}
	p.at++
	var err error
	switch c.Kind {
	case Add:
		err = p.content(&c)
	case Update:
		err = p.update(&c)
	}
	p.changes = append(p.changes, c)
	return err
}

// unexpected names the line at hand and what should be there.
func (p *parser) unexpected(want string) error {
	switch line := strings.TrimSpace(p.line()); {
	case line == beginPatch || line == endPatch:
		return p.fail("%q in the middle of the patch", line)
	case strings.HasPrefix(line, `\ No newline`):
		return p.fail("%q is not of this format: a file keeps the end that it has", shorten(line))
	}
	return p.fail("want %s, not %q", want, shorten(p.line()))
}

func (p *parser) content(c *Change) error {
	for ; p.more() && strings.HasPrefix(p.line(), "+"); p.at++ {
		c.Content = append(c.Content, p.line()[1:])
	}
	end := p.at
	p.skipBlank()
	if p.more() && !strings.HasPrefix(strings.TrimSpace(p.line()), anyMarker) {
		p.at = end
		return p.unexpected(`"+" before every line of a new file, empty ones too`)
	}
	return nil
}

func (p *parser) update(c *Change) error {
	if p.more() {
		if rest, found := strings.CutPrefix(strings.TrimSpace(p.line()), moveTo); found {
			c.MoveTo = strings.TrimSpace(rest)
			if err := checkPath(c.MoveTo); err != nil {
				return p.fail("%w: %q", err, shorten(c.MoveTo))
			}
			p.at++
		}
	}
	for p.skipBlank(); p.more() && !p.atFile(); p.skipBlank() {
		if n := len(c.Hunks); n > 0 && c.Hunks[n-1].EndOfFile {
			return p.unexpected(fmt.Sprintf("no more lines of this file after %q", endOfFile))
		}
		if err := p.hunk(c); err != nil {
			return err
		}
	}
	if len(c.Hunks) == 0 && c.MoveTo == "" {
		return &SyntaxError{c.Line, fmt.Errorf("update of %q: %w", c.Path, ErrNoChange)}
	}
	return nil
}

// atFile tells whether the next line ends the change at hand. Only here a
// marker must be at the beginning of its line: with a blank before, it is text.
func (p *parser) atFile() bool {
	return strings.HasPrefix(p.line(), anyMarker) && strings.TrimSpace(p.line()) != endOfFile
}

// hunk reads headers, lines, and the mark of the end.
func (p *parser) hunk(c *Change) error {
	if p.hunks++; p.hunks > MaxHunks {
		return p.fail("%w", ErrTooManyHunks)
	}
	h := Hunk{Line: p.number()}
	if err := p.headers(&h); err != nil {
		return err
	}
	blanks, err := p.hunkLines(&h)
	if err != nil {
		return err
	}
	// Blank lines at the end may be lines of the file, or space between hunks.
	// Where nothing else is looked for, they are space: a hunk that only adds
	// must not go looking for a blank line.
	if len(h.old()) == blanks {
		h.Lines = h.Lines[:len(h.Lines)-blanks]
	}
	if p.more() && strings.HasPrefix(p.line(), endOfFile) && !p.atFile() {
		h.EndOfFile = true
		p.at++
	}
	if !changesSomething(h.Lines) {
		return &SyntaxError{h.Line, fmt.Errorf("hunk has no line that begins with \"+\" or \"-\": %w", ErrNoChange)}
	}
	c.Hunks = append(c.Hunks, h)
	return nil
}

func changesSomething(lines []Line) bool {
	for _, line := range lines {
		if line.Op != Keep {
			return true
		}
	}
	return false
}

func (p *parser) headers(h *Hunk) error {
	for ; p.more() && strings.HasPrefix(p.line(), hunkHeader); p.at++ {
		text := strings.TrimRight(p.line()[len(hunkHeader):], " \t")
		header, spaced := strings.CutPrefix(text, " ")
		switch {
		case strings.TrimSpace(text) == "":
			continue
		case !spaced:
			return p.fail("want a blank after %q", hunkHeader)
		case lineNumbers.MatchString(header):
			return p.fail("%q is the header of a unified diff: after %q put a line of the file, or nothing", shorten(p.line()), hunkHeader)
		}
		h.Headers = append(h.Headers, header)
	}
	return nil
}

// hunkLines reads the lines of a hunk, and counts the empty ones at its end.
func (p *parser) hunkLines(h *Hunk) (blanks int, err error) {
	for ; p.more(); p.at++ {
		line := p.line()
		switch {
		case line == "":
			h.Lines = append(h.Lines, Line{Keep, ""})
			blanks++
			continue
		case line[0] == byte(Keep), line[0] == byte(Remove), line[0] == byte(Insert):
			h.Lines = append(h.Lines, Line{Op(line[0]), line[1:]})
		case strings.HasPrefix(line, hunkHeader), strings.HasPrefix(line, anyMarker):
			return blanks, nil
		default:
			return 0, p.unexpected(`" ", "+" or "-" before a line of a hunk`)
		}
		blanks = 0
	}
	return blanks, nil
}

// shorten keeps a quoted line from filling an error.
func shorten(s string) string {
	const enough = 80
	if runes := []rune(s); len(runes) > enough {
		return string(runes[:enough]) + "…"
	}
	return s
}
