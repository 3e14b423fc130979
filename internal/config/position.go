package config

import (
	"strconv"
	"strings"
)

// Position returns where in the file the value of a place is written, by its
// name as origins and problems spell it ("agents.list[0].sandbox.mode"). Both
// numbers are 0 if it is not in the file.
func (c *Config) Position(place string) (line, column int) {
	at, ok := parsePath(place)
	if !ok || at == nil || c.root == nil {
		return 0, 0
	}
	value, _, ok := at.find(c.root)
	if !ok {
		return 0, 0
	}
	p := c.doc.Position(value.offset)
	return p.Line, p.Column
}

// parsePath reads what path.String wrote.
func parsePath(text string) (at *path, ok bool) {
	for text != "" {
		if inside, isIndex := strings.CutPrefix(text, "["); isIndex {
			if at, text, ok = at.parseIndex(inside); !ok {
				return nil, false
			}
			continue
		}
		text = strings.TrimPrefix(text, ".")
		end := strings.IndexAny(text, ".[")
		if end < 0 {
			end = len(text)
		}
		at, text = at.child(text[:end]), text[end:]
	}
	return at, true
}

// parseIndex reads `0]` or `"a key"]` and returns what follows.
func (p *path) parseIndex(text string) (at *path, rest string, ok bool) {
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		key, _ := strconv.Unquote(quoted)
		rest, ok = strings.CutPrefix(text[len(quoted):], "]")
		return p.child(key), rest, ok
	}
	digits, rest, ok := strings.Cut(text, "]")
	index, err := strconv.Atoi(digits)
	return p.item(index), rest, ok && err == nil && index >= 0
}

// FromVariable reports whether the value of a place came, wholly or in part,
// out of the environment: such a value may be a secret whatever its name is.
func (c *Config) FromVariable(place string) bool {
	at, ok := parsePath(place)
	if !ok || at == nil || c.root == nil {
		return false
	}
	value, _, ok := at.find(c.root)
	return ok && value.expanded
}
