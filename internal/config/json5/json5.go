// Package json5 turns JSON5 (spec 1.0.0) into plain JSON and remembers where
// every byte of the result came from, so that problems found in the JSON are reported
// at their positions in the file.
//
// It knows syntax only: duplicate keys, key names and value types are the
// business of the caller.
package json5

import (
	"fmt"
	"unicode/utf8"
)

const (
	// MaxSize is the largest source that Parse accepts, in bytes.
	MaxSize = 8 << 20
	// MaxDepth is how deep lists and objects may be nested.
	MaxDepth = 200
	// MaxHexDigits bounds a hexadecimal number: more digits than this are
	// beyond the largest number that any reader of JSON can hold.
	MaxHexDigits = 256
)

// SyntaxError says what is wrong with a source, and where.
type SyntaxError struct {
	Position
	Msg string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg)
}

// Document is a parsed source.
type Document struct {
	// JSON is the source as standard JSON, without white space or comments.
	// Duplicate keys are kept.
	JSON []byte

	lines lines
	marks []mark
}

// Parse reads one JSON5 value. Its errors are of type *SyntaxError.
func Parse(src []byte) (*Document, error) {
	if len(src) > MaxSize {
		return nil, &SyntaxError{
			Position: Position{Line: 1, Column: 1},
			Msg:      fmt.Sprintf("the file is larger than %d bytes", MaxSize),
		}
	}
	p := &parser{src: src, out: make([]byte, 0, len(src))}
	if err := p.document(); err != nil {
		return nil, err
	}
	return &Document{JSON: p.out, lines: newLines(src), marks: p.marks}, nil
}

// Position tells where the byte of JSON at jsonOffset came from. An offset out
// of range is taken as the nearest one in range.
func (d *Document) Position(jsonOffset int) Position {
	return d.lines.position(d.sourceOffset(jsonOffset))
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(src []byte) int {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
