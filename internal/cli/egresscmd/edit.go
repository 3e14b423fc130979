package egresscmd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/json5"
)

// egressKeys lead to the rules of all agents in a configuration file.
var egressKeys = []string{"agents", "defaults", "sandbox", "egress", "allow"}

// insertRules adds rules to a configuration file, as text: comments and spelling stay. A
// file without a mode gets the mode enforce.
func insertRules(src []byte, rules []string) ([]byte, error) {
	if len(bytes.TrimSpace(src)) == 0 {
		src = []byte("{\n}\n")
	}
	doc, err := json5.Parse(src)
	if err != nil {
		return nil, err
	}
	p, err := deepest(doc)
	if err != nil {
		return nil, err
	}
	at := doc.Position(p.after-1).Offset + 1
	return slices.Concat(src[:at], []byte(p.text(rules)), src[at:]), nil
}

// place is where in a document the rules belong.
type place struct {
	after   int  // the offset in the JSON behind an opening bracket
	found   int  // how many of egressKeys exist
	hasMode bool // egress has a mode
}

// deepest finds the innermost value of egressKeys that exists.
func deepest(doc *json5.Document) (p place, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(doc.JSON), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return p, fmt.Errorf("the file is no object")
	}
	p.after = int(d.InputOffset())
	for p.found < len(egressKeys) {
		entered, err := p.enter(d)
		if err != nil || !entered {
			return p, err
		}
	}
	return p, nil
}

// enter goes into the next of egressKeys, if the object that d reads has it.
func (p *place) enter(d *jsontext.Decoder) (bool, error) {
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return false, err
		}
		p.hasMode = p.hasMode || p.found == len(egressKeys)-1 && name.String() == "mode"
		if name.String() != egressKeys[p.found] {
			if err := d.SkipValue(); err != nil {
				return false, err
			}
			continue
		}
		open, err := d.ReadToken()
		if want := jsontext.Kind(p.opening()); err != nil || open.Kind() != want {
			return false, fmt.Errorf("%s is not what rules can be added to", strings.Join(egressKeys[:p.found+1], "."))
		}
		p.after = int(d.InputOffset())
		p.found++
		return true, nil
	}
	return false, nil
}

// opening is the bracket that the next of egressKeys begins with.
func (p *place) opening() byte {
	if p.found == len(egressKeys)-1 {
		return '['
	}
	return '{'
}

// text is what is written at the place.
func (p *place) text(rules []string) string {
	var quoted []string
	for _, r := range rules {
		text, _ := jsontext.AppendQuote(nil, r) // the rules were checked
		quoted = append(quoted, string(text))
	}
	list := strings.Join(quoted, ", ")
	if p.found == len(egressKeys) {
		return list + ", "
	}
	text := "allow: [" + list + "],"
	if p.found < len(egressKeys)-1 || !p.hasMode {
		text = `mode: "enforce", ` + text
	}
	for i := len(egressKeys) - 2; i >= p.found; i-- {
		text = egressKeys[i] + ": { " + text + " },"
	}
	return " " + text + " "
}
