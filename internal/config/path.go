package config

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/atoll-run/atoll/internal/config/wording"
)

// path names a place in the file: agents.list[0].sandbox.docker.image. It is a
// chain, not text, because it is spelled only when there is something to say.
type path struct {
	up    *path
	key   string
	index int // of a list item; -1 for a key
}

func (p *path) child(key string) *path { return &path{p, key, -1} }

func (p *path) item(index int) *path { return &path{p, "", index} }

// under extends the path by keys joined with points.
func (p *path) under(keys string) *path {
	for key := range strings.SplitSeq(keys, ".") {
		p = p.child(key)
	}
	return p
}

// isPlain reports whether a key can stand in a path without quotes.
func isPlain(key string) bool {
	return key != "" && len(key) <= wording.MaxQuoted && !strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// String spells the path. A nil path is the file as a whole.
func (p *path) String() string {
	var b strings.Builder
	p.spell(&b)
	return b.String()
}

func (p *path) spell(b *strings.Builder) {
	if p == nil {
		return
	}
	p.up.spell(b)
	switch {
	case p.index >= 0:
		b.WriteString("[" + strconv.Itoa(p.index) + "]")
	case !isPlain(p.key):
		b.WriteString("[" + wording.Quote(p.key) + "]")
	case b.Len() > 0:
		b.WriteString("." + p.key)
	default:
		b.WriteString(p.key)
	}
}

// find follows the path down from root. It returns the offset of the key (of
// the item, for a list) and whether the place exists.
func (p *path) find(root *node) (at *node, offset int, ok bool) {
	if p == nil {
		return root, root.offset, root != nil
	}
	up, _, ok := p.up.find(root)
	if !ok {
		return nil, 0, false
	}
	if p.index >= 0 {
		if p.index >= len(up.items) {
			return nil, 0, false
		}
		return up.items[p.index], up.items[p.index].offset, true
	}
	for _, m := range up.members {
		if m.key == p.key {
			return m.value, m.offset, true
		}
	}
	return nil, 0, false
}
