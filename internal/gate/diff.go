package gate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

const (
	maxDiffFile = 1 << 20   // bytes of each side
	maxDiff     = 256 << 10 // bytes of a diff
)

// Diff returns how a change of the last set differs from the base, as text that a
// terminal can show: control and invisible characters are escaped.
func (g *Gate) Diff(path string) (string, error) {
	set, err := g.Last()
	if err != nil {
		return "", err
	}
	e := set.find(path)
	if e == nil {
		return "", fmt.Errorf("%q %w", path, ErrUnknownPath)
	}
	base, err := g.openBase()
	if err != nil {
		return "", err
	}
	defer base.close()
	text, err := g.diff(base, e)
	return printable(text), err
}

func (g *Gate) diff(base *baseDir, e *Entry) (string, error) {
	switch {
	case e.Mode.IsDir() || e.OldMode.IsDir() && e.SHA256 == "":
		return fmt.Sprintf("%s: directory %s\n", e.Path, e.Kind), nil
	case e.Link != "":
		return fmt.Sprintf("%s -> %s\n", e.Path, e.Link), nil
	case e.SHA256 == "" && e.Kind != overlay.Deleted:
		return fmt.Sprintf("%s: %s\n", e.Path, e.why()), nil
	}
	var old, data []byte
	oldName, newName := e.Path, e.Path
	old, err := base.read(e.Path, maxDiffFile)
	if err != nil {
		old, oldName = nil, diff.DevNull
	}
	if e.Kind == overlay.Deleted {
		newName = diff.DevNull
	} else if data, err = g.staged(e.SHA256); err != nil {
		return "", err
	}
	if len(data) > maxDiffFile || e.OldMode.IsRegular() && err != nil {
		return fmt.Sprintf("%s: too large to be compared: %d bytes\n", e.Path, e.Size), nil
	}
	head := ""
	if e.Kind != overlay.Deleted && oldName != diff.DevNull && executable(e.Mode) != executable(e.OldMode) {
		head = fmt.Sprintf("%s: mode %04o -> %04o\n", e.Path, e.OldMode.Perm(), e.Mode.Perm())
	}
	return head + diff.Unified(oldName, newName, old, data, maxDiff), nil
}

// printable escapes what would move the cursor, colour or hide text.
func printable(text string) string {
	var b strings.Builder
	for i, width := 0, 0; i < len(text); i += width {
		var r rune
		r, width = utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && width == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n' || r == '\t' || unicode.IsPrint(r) && !unicode.In(r, unicode.Cf):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}
