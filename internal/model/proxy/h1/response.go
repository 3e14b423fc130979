package h1

import (
	"bytes"
)

// Response is the head of an answer.
type Response struct {
	Status int
	Fields []Field
	Length int64 // of the body; Chunked or UntilClose
	Close  bool  // the connection ends with this answer
}

// ReadResponse reads the head of the answer to a request with this method.
// Answers of class 1xx before it are skipped.
func (r *Reader) ReadResponse(a *Response, method string, p Patience) error {
	for range maxInterim + 1 {
		if err := r.readResponse(a, method, p); err != nil {
			return err
		}
		if a.Status >= 200 {
			return nil
		}
		if a.Status == 101 {
			return bad("the upstream switched protocols")
		}
	}
	return bad("too many interim answers")
}

func (r *Reader) readResponse(a *Response, method string, p Patience) error {
	head, err := r.readHead(p)
	if err != nil {
		return err
	}
	line, rest, err := cutLine(head)
	if err != nil {
		return err
	}
	*a = Response{}
	minor, err := a.parseLine(line)
	if err != nil {
		return err
	}
	if a.Fields, err = r.parseFields(rest); err != nil {
		return err
	}
	f, err := readFraming(a.Fields)
	if err != nil {
		return err
	}
	if f.chunked && minor == '0' {
		return bad("HTTP/1.0 knows no chunks")
	}
	a.frame(f, method, minor)
	return nil
}

// parseLine parses "HTTP/1.x nnn reason" and returns the x.
func (a *Response) parseLine(line []byte) (minor byte, err error) {
	rest, ok := bytes.CutPrefix(line, []byte("HTTP/1."))
	if !ok || len(rest) < 5 || rest[0] != '0' && rest[0] != '1' || rest[1] != ' ' || len(rest) > 5 && rest[5] != ' ' {
		return 0, bad("the upstream does not speak HTTP/1.1")
	}
	for _, c := range rest[2:5] {
		if c < '0' || c > '9' {
			return 0, bad("the upstream's status is not a number")
		}
		a.Status = a.Status*10 + int(c-'0')
	}
	if a.Status < 100 || a.Status > 599 {
		return 0, bad("the upstream's status is out of range")
	}
	return rest[0], nil
}

// frame decides where the answer ends (RFC 9112, 6.3).
func (a *Response) frame(f framing, method string, minor byte) {
	a.Close = f.close || minor == '0' && !f.keep
	switch {
	case method == "HEAD" || a.Status < 200 || a.Status == 204 || a.Status == 304:
		a.Length = 0
	case f.chunked:
		a.Length = Chunked
	case f.length >= 0:
		a.Length = f.length
	default:
		a.Length, a.Close = UntilClose, true
	}
}

// Get returns the value of the first field of that name, given in lower case.
func (a *Response) Get(lower string) []byte { return get(a.Fields, lower) }
