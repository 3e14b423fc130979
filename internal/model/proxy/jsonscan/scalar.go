package jsonscan

// Word reads true, false or null.
func (s *Scanner) Word() Kind {
	kind := s.Kind()
	word := "null"
	switch kind {
	case True:
		word = "true"
	case False:
		word = "false"
	case Null:
	default:
		s.fail("not true, false or null")
		return None
	}
	if len(s.in)-s.pos < len(word) || string(s.in[s.pos:s.pos+len(word)]) != word {
		s.fail("an unknown word")
		return None
	}
	s.pos += len(word)
	return kind
}

// Digits reads a number and returns it as it is written.
func (s *Scanner) Digits() []byte {
	if s.Kind() != Number {
		s.fail("not a number")
		return nil
	}
	start := s.pos
	if s.in[s.pos] == '-' {
		s.pos++
	}
	if s.at('0') {
		s.pos++
	} else {
		s.run()
	}
	if s.at('.') {
		s.pos++
		s.run()
	}
	if s.at('e') || s.at('E') {
		if s.pos++; s.at('+') || s.at('-') {
			s.pos++
		}
		s.run()
	}
	if s.pos-start > maxNumber {
		s.fail("a number is too long")
	}
	if s.err != nil {
		return nil
	}
	return s.in[start:s.pos]
}

func (s *Scanner) at(c byte) bool { return s.pos < len(s.in) && s.in[s.pos] == c }

// run reads one digit or more.
func (s *Scanner) run() {
	start := s.pos
	for s.pos < len(s.in) && '0' <= s.in[s.pos] && s.in[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == start {
		s.fail("a digit is missing")
	}
}

// Int reads a number that is a whole one of at most 15 digits; ok is false for
// any other number.
func (s *Scanner) Int() (n int64, ok bool) {
	digits := s.Digits()
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 15 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
