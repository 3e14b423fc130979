package egress

import "time"

// SetHelloTimeout has programs send their first message within d.
func (o *Options) SetHelloTimeout(d time.Duration) { o.helloTimeout = d }

// Sweep closes connections that are idle or too old now.
func (s *Server) Sweep() { s.sweep() }

// OpenConnections returns how many connections are open, and the bytes that they received.
func (s *Server) OpenConnections() (n int, received int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		received += c.in.Load()
	}
	return len(s.open), received
}
