package dialect

import (
	"bytes"
	"strconv"

	"github.com/atoll-run/atoll/internal/model/proxy/jsonscan"
)

// maxTokens is the largest count that is accepted.
const maxTokens = 1 << 31

// Usage is the number of tokens that an answer reports. Input counts every token that
// was read; Cached and Written are parts of it.
type Usage struct {
	Found     bool // the answer said something that can be believed
	Input     int64
	Cached    int64 // read from the provider's cache
	Written   int64 // written to it
	Output    int64
	Reasoning int64 // part of Output
	Cost      int64 // in millionths of a dollar, told by the upstream; -1: not told
	Model     string
}

// Meter gathers the usage of one answer. Its Usage grows with each event: counts
// in a stream are totals so far.
type Meter struct {
	Usage       Usage
	dialect     Dialect
	scan        *jsonscan.Scanner
	began       bool
	implausible bool // the answer reports something impossible
}

// NewMeter returns a meter. Reset begins an answer.
func NewMeter() *Meter { return &Meter{scan: jsonscan.New()} }

// Reset begins an answer.
func (m *Meter) Reset(d Dialect) {
	m.dialect, m.began, m.implausible, m.Usage = d, false, false, Usage{Cost: -1}
}

// EventKind tells the relay what an event is.
type EventKind int

// The kinds of events.
const (
	Content   EventKind = iota // part of the answer
	UsageOnly                  // nothing but the usage
	Final                      // the upstream's mark that nothing follows
)

// Event reads the data of one event of a stream.
func (m *Meter) Event(data []byte) EventKind {
	if m.began && !m.dialect.tellsUsage(data) {
		if string(data) == "[DONE]" {
			return Final
		}
		return Content
	}
	m.began = true
	return m.document(data)
}

// Whole reads an answer that is not a stream.
func (m *Meter) Whole(body []byte) { m.document(body) }

// tellsUsage reports whether there is a member with the usage that is not null. Text of
// the model cannot look like one: its quotes are escaped.
func (d Dialect) tellsUsage(data []byte) bool {
	name := []byte(`"usage"`)
	if d == Google {
		name = []byte(`"usageMetadata"`)
	}
	for {
		at := bytes.Index(data, name)
		if at < 0 {
			return false
		}
		data = data[at+len(name):]
		rest := bytes.TrimLeft(data, " \t\r\n")
		if len(rest) == 0 || rest[0] != ':' {
			continue
		}
		if rest = bytes.TrimLeft(rest[1:], " \t\r\n"); len(rest) == 0 || rest[0] != 'n' {
			return true
		}
	}
}

// document reads one JSON document: an event or a whole answer.
func (m *Meter) document(data []byte) EventKind {
	s := m.scan
	s.Reset(data)
	if s.Kind() != jsonscan.Object {
		return Content
	}
	s.Open()
	if m.dialect == Google {
		return m.google()
	}
	usage, choices := false, false
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		switch string(key) {
		case "usage":
			usage = m.usage() || usage
		case "choices":
			choices = m.notEmpty()
		case "model":
			m.model()
		case "message", "response":
			m.inner()
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		m.implausible = true
		return Content
	}
	if m.dialect == OpenAI && usage && !choices {
		return UsageOnly
	}
	return Content
}

// inner reads the message of message_start, or the response of an event.
func (m *Meter) inner() {
	s := m.scan
	if s.Kind() != jsonscan.Object {
		s.Skip()
		return
	}
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		switch string(key) {
		case "usage":
			m.usage()
		case "model":
			m.model()
		default:
			s.Skip()
		}
	}
}

func (m *Meter) model() {
	if m.scan.Kind() != jsonscan.String {
		m.scan.Skip()
		return
	}
	if text := m.scan.Text(); m.Usage.Model == "" && len(text) <= 256 {
		m.Usage.Model = string(text)
	}
}

// notEmpty tells whether an array has an element.
func (m *Meter) notEmpty() bool {
	s := m.scan
	if s.Kind() != jsonscan.Array {
		s.Skip()
		return false
	}
	some := false
	for s.Open(); s.More(); some = true {
		s.Skip()
	}
	return some
}

// usage reads a usage object of any dialect.
func (m *Meter) usage() bool {
	s := m.scan
	if s.Kind() != jsonscan.Object {
		s.Skip()
		return false
	}
	var u counts
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		m.usageMember(string(key), &u)
	}
	if s.Err() == nil {
		m.merge(&u)
	}
	return true
}

// counts are the members of a usage object. The two ways of telling input,
// with and without what came from the cache, are kept apart.
type counts struct {
	input, output, cached, reasoning, read, written int64
	said                                            bool
}

func (m *Meter) usageMember(key string, u *counts) {
	switch key {
	case "prompt_tokens", "input_tokens":
		m.count(&u.input)
		u.said = true
	case "completion_tokens", "output_tokens":
		m.count(&u.output)
		u.said = true
	case "cache_read_input_tokens":
		m.count(&u.read)
	case "cache_creation_input_tokens":
		m.count(&u.written)
	case "prompt_tokens_details", "input_tokens_details":
		m.detail("cached_tokens", &u.cached)
	case "completion_tokens_details", "output_tokens_details":
		m.detail("reasoning_tokens", &u.reasoning)
	case "cost":
		m.cost()
	default:
		m.scan.Skip()
	}
}

// count reads a count. An impossible one makes the whole report implausible.
func (m *Meter) count(to *int64) {
	switch m.scan.Kind() {
	case jsonscan.Null:
		m.scan.Word()
	case jsonscan.Number:
		n, ok := m.scan.Int()
		if !ok || n < 0 || n > maxTokens {
			m.implausible = true
			return
		}
		*to = max(*to, n)
	default:
		m.implausible = true
		m.scan.Skip()
	}
}

func (m *Meter) detail(name string, to *int64) {
	s := m.scan
	if s.Kind() != jsonscan.Object {
		s.Skip()
		return
	}
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		if string(key) == name {
			m.count(to)
		} else {
			s.Skip()
		}
	}
}

func (m *Meter) cost() {
	if m.scan.Kind() != jsonscan.Number {
		m.scan.Skip()
		return
	}
	dollars, err := strconv.ParseFloat(string(m.scan.Digits()), 64)
	if err == nil && dollars >= 0 && dollars < 1e6 {
		m.Usage.Cost = max(m.Usage.Cost, int64(dollars*1e6+0.5))
	}
}

// merge takes the larger of each count that was reported so far.
func (m *Meter) merge(u *counts) {
	if !u.said || m.implausible {
		return
	}
	if m.dialect == Anthropic {
		u.input += u.read + u.written
		u.cached = u.read
	} else {
		u.cached = max(u.cached, u.read)
	}
	t := &m.Usage
	t.Found = true
	t.Input, t.Output = max(t.Input, u.input), max(t.Output, u.output)
	t.Cached = max(t.Cached, min(u.cached, u.input))
	t.Written = max(t.Written, min(u.written, u.input))
	t.Reasoning = max(t.Reasoning, min(u.reasoning, u.output))
}

// Plausible reports whether the usage can be charged as it was reported.
func (m *Meter) Plausible() bool { return m.Usage.Found && !m.implausible }
