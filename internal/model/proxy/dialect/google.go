package dialect

import "github.com/atoll-run/atoll/internal/model/proxy/jsonscan"

// google reads the rest of an answer, or of an event, of Google's API. Its counts are
// totals so far, also in a stream, where every event has them.
func (m *Meter) google() EventKind {
	s := m.scan
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		switch string(key) {
		case "usageMetadata":
			m.googleUsage()
		case "modelVersion":
			m.model()
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		m.implausible = true
	}
	return Content
}

// googleUsage reads the counts. Thoughts are counted beside the answer, and what tools of
// the provider brought in beside the prompt; both are charged.
func (m *Meter) googleUsage() {
	s := m.scan
	if s.Kind() != jsonscan.Object {
		s.Skip()
		return
	}
	var u counts
	var thoughts, fetched int64
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		switch string(key) {
		case "promptTokenCount":
			m.count(&u.input)
			u.said = true
		case "candidatesTokenCount":
			m.count(&u.output)
			u.said = true
		case "thoughtsTokenCount":
			m.count(&thoughts)
		case "cachedContentTokenCount":
			m.count(&u.cached)
		case "toolUsePromptTokenCount":
			m.count(&fetched)
		default:
			s.Skip()
		}
	}
	if s.Err() == nil {
		u.input, u.output, u.reasoning = u.input+fetched, u.output+thoughts, thoughts
		m.merge(&u)
	}
}
