package rest

import "slices"

// Patterns are the routes that there are.
func (s *Server) Patterns() (list []string) {
	for i := range s.table {
		list = append(list, s.table[i].pattern())
	}
	slices.Sort(list)
	return list
}

// DecodeJSON is how bodies are read.
func DecodeJSON(data []byte, v any) error { return decodeJSON(data, v) }

// DecodeQuery is how queries are read.
func DecodeQuery(raw string, v any) error { return decodeQuery(raw, v) }

// Streams is how many readers of events there are.
func (s *Server) Streams() (n int) {
	s.active.mu.Lock()
	defer s.active.mu.Unlock()
	for _, some := range s.active.streams {
		n += some
	}
	return n
}

// TraceURL is the address of a trace's page.
func (s *Server) TraceURL(trace string) string { return (&call{Server: s}).traceURL(trace) }
