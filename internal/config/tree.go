package config

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/json5"
)

// node is one value of the file. The tree keeps what decoding into Go types
// would lose: order, duplicate keys and positions.
type node struct {
	kind    jsontext.Kind // '{', '[', '"', '0', 't', 'f' or 'n'
	text    string        // the content of a string, the digits of a number
	members []member      // of an object, as written
	items   []*node       // of a list
	offset  int           // in the JSON of the document

	expanded bool // a variable of the environment is part of text
}

// member is one key of an object with its value.
type member struct {
	key    string
	offset int
	value  *node
}

// get returns the value of key, nil if there is none. Of duplicates, which are
// reported elsewhere, it returns the first.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// string returns the content of a string node, "" for anything else.
func (n *node) string() string {
	if n == nil || n.kind != '"' {
		return ""
	}
	return n.text
}

// isTrue reports whether the node is the literal true.
func (n *node) isTrue() bool { return n != nil && n.kind == 't' }

// parseTree reads the JSON of doc, which is known to be well formed.
func parseTree(doc *json5.Document) (*node, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(doc.JSON), jsontext.AllowDuplicateNames(true))
	return readNode(dec)
}

func readNode(dec *jsontext.Decoder) (*node, error) {
	n := &node{kind: dec.PeekKind()}
	switch n.kind {
	case '{':
		return n, n.readMembers(dec)
	case '[':
		return n, n.readItems(dec)
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	n.offset = int(dec.InputOffset()) - len(raw)
	n.text = string(raw)
	if n.kind == '"' {
		content, err := jsontext.AppendUnquote(nil, raw)
		n.text = string(content)
		return n, err
	}
	return n, nil
}

func (n *node) open(dec *jsontext.Decoder) error {
	_, err := dec.ReadToken()
	n.offset = int(dec.InputOffset()) - 1
	return err
}

func (n *node) readMembers(dec *jsontext.Decoder) error {
	if err := n.open(dec); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		key, err := readNode(dec)
		if err != nil {
			return err
		}
		value, err := readNode(dec)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{key.text, key.offset, value})
	}
	_, err := dec.ReadToken()
	return err
}

func (n *node) readItems(dec *jsontext.Decoder) error {
	if err := n.open(dec); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		item, err := readNode(dec)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := dec.ReadToken()
	return err
}

// json writes the node back as JSON, for decoding into Go types.
func (n *node) json() jsontext.Value {
	return n.appendJSON(nil)
}

func (n *node) appendJSON(out []byte) []byte {
	switch n.kind {
	case '{':
		out = append(out, '{')
		for i, m := range n.members {
			out = appendComma(out, i)
			out = appendString(out, m.key)
			out = append(out, ':')
			out = m.value.appendJSON(out)
		}
		return append(out, '}')
	case '[':
		out = append(out, '[')
		for i, item := range n.items {
			out = appendComma(out, i)
			out = item.appendJSON(out)
		}
		return append(out, ']')
	case '"':
		return appendString(out, n.text)
	default:
		return append(out, n.text...)
	}
}

func appendComma(out []byte, index int) []byte {
	if index > 0 {
		out = append(out, ',')
	}
	return out
}

func appendString(out []byte, text string) []byte {
	out, _ = jsontext.AppendQuote(out, text) // fails only on invalid UTF-8, which json5 refuses
	return out
}
