package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/amount"
	"github.com/atoll-run/atoll/internal/config/json5"
	"github.com/atoll-run/atoll/internal/config/shape"
	"github.com/atoll-run/atoll/internal/config/textcheck"
	"github.com/atoll-run/atoll/internal/config/wording"
	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/errhint"
)

// shortRule reads an entry of allow in its short form: NAME, *.NAME, NAME:PORT
// or preset:NAME.
func shortRule(text string) (EgressRule, error) {
	if name, ok := strings.CutPrefix(text, textcheck.PresetPrefix); ok {
		return EgressRule{Preset: name}, nil
	}
	p, port, err := hostname.ParsePatternPort(text)
	if err != nil {
		return EgressRule{}, err
	}
	r := EgressRule{Host: p.String()}
	if port != 0 {
		r.Ports = []int{port}
	}
	return r, nil
}

// short returns the rule's short form, if it has one.
func (r EgressRule) short() (text string, ok bool) {
	if r.Mode != "" || r.Methods != nil || r.Paths != nil || r.Git != "" || r.Secret != "" || r.Upgrade || r.WebSocket || len(r.Ports) > 1 {
		return "", false
	}
	switch {
	case r.Preset != "":
		return textcheck.PresetPrefix + r.Preset, len(r.Ports) == 0
	case len(r.Ports) == 1:
		return r.Host + ":" + strconv.Itoa(r.Ports[0]), true
	}
	return r.Host, true
}

// denied reads an entry of deny.
func denied(text string) (EgressDeny, error) {
	p, port, err := hostname.ParseWidePatternPort(text)
	return EgressDeny{Host: p.String(), Port: port}, err
}

// String is the entry as the file has it.
func (d EgressDeny) String() string {
	if d.Port != 0 {
		return d.Host + ":" + strconv.Itoa(d.Port)
	}
	return d.Host
}

// MarshalJSON writes the entry as the file has it.
func (d EgressDeny) MarshalJSON() ([]byte, error) { return amount.TextOrNumber(d.String(), false) }

// FromFlag is the source of the origin of a rule that a command line gave.
const FromFlag = "flag"

// AllowRule adds a rule that a command line gives: an entry of allow in its
// short form, or an object in JSON5. Egress that is off becomes enforce.
func (e *Egress) AllowRule(text string) error {
	r, err := parseRule(text)
	if err != nil {
		return err
	}
	r.At = Origin{Source: FromFlag}
	e.Allow = append(slices.Clip(e.Allow), r)
	if e.Mode == EgressOff || e.Mode == "" {
		e.Mode = EgressEnforce
	}
	return nil
}

// parseRule reads and checks one entry of allow.
func parseRule(text string) (EgressRule, error) {
	entry := []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		entry, _ = jsontext.AppendQuote(nil, text)
	}
	doc, err := json5.Parse(slices.Concat([]byte("{allow: ["), entry, []byte("\n]}")))
	if err != nil {
		return EgressRule{}, fmt.Errorf("the rule %s: %w", wording.Quote(text), err)
	}
	root, err := parseTree(doc)
	if err != nil {
		return EgressRule{}, err
	}
	c := &checker{report: &report{doc: doc}, top: shape.Of(reflect.TypeFor[file](), shape.Limits{})}
	c.value(nil, root, shape.Of(reflect.TypeFor[egressFile](), shape.Limits{}))
	if len(c.errors) > 0 {
		return EgressRule{}, errhint.With(fmt.Errorf("the rule %s: %s", wording.Quote(text), c.errors[0].Message), c.errors[0].Hint)
	}
	var written egressFile
	if err := json.Unmarshal(root.json(), &written); err != nil {
		return EgressRule{}, err
	}
	if len(written.Allow) != 1 || len(root.members) != 1 {
		return EgressRule{}, fmt.Errorf("%s is not one rule", wording.Quote(text))
	}
	return written.Allow[0].rule()
}
