package proxy

// Busy is the number of requests under way, with their settling.
func (s *Server) Busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, active := range s.active {
		n += active
	}
	return n
}

// Held is the memory of all bodies under way.
func (s *Server) Held() int64 { return s.memory.Used() }

// Conns is the number of connections.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
