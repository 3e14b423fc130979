package h1

import (
	"bytes"
	"errors"
	"io"
	"time"
)

// Field is one header field. Names keep the case they were sent in.
type Field struct{ Name, Value []byte }

// Is compares the name with one in lower case.
func (f *Field) Is(lower string) bool { return equalFold(f.Name, lower) }

// HeadTimeouts are the time limits of reading a head.
type HeadTimeouts struct {
	First time.Duration // for its first byte
	Rest  time.Duration // from there to its last
}

// readHead reads up to the empty line and returns everything before it,
// line ends included. io.EOF means that nothing came at all.
func (r *Reader) readHead(p HeadTimeouts) ([]byte, error) {
	r.restart()
	if r.Buffered() == 0 {
		if err := r.wait(p.First); err != nil {
			return nil, err
		}
	}
	from, waiting := 0, false
	for {
		if end := bytes.Index(r.buf[from:r.w], []byte("\r\n\r\n")); end >= 0 {
			end += from + 2
			if end > MaxHead {
				return nil, refuse(431, "the head is larger than %d bytes", MaxHead)
			}
			return r.pin(end), nil
		}
		if r.w > MaxHead {
			return nil, refuse(431, "the head is larger than %d bytes", MaxHead)
		}
		from = max(0, r.w-3)
		if r.w == len(r.buf) {
			r.enlarge()
		}
		if !waiting {
			waiting = true
			if err := r.conn.SetReadDeadline(time.Now().Add(p.Rest)); err != nil {
				return nil, err
			}
		}
		if err := r.fill(); errors.Is(err, io.EOF) {
			return nil, ErrTruncated
		} else if err != nil {
			return nil, err
		}
	}
}

// wait waits for the first byte.
func (r *Reader) wait(patience time.Duration) error {
	if err := r.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return r.fill()
}

// pin keeps the head where it is until the next one is read.
func (r *Reader) pin(end int) []byte {
	if len(r.buf)-end < smallBuffer/4 && len(r.buf) < largeBuffer {
		r.enlarge()
	}
	r.floor, r.r = end+2, end+2
	return r.buf[:end]
}

// cutLine returns the next line without its end. Lines that end in anything but
// CR LF, and control characters, are not accepted.
func cutLine(head []byte) (line, rest []byte, err error) {
	end := bytes.IndexByte(head, '\n')
	if end < 1 || head[end-1] != '\r' {
		return nil, nil, bad("a line does not end in CR LF")
	}
	line = head[:end-1]
	for _, c := range line {
		if c < ' ' && c != '\t' || c == 0x7f {
			return nil, nil, bad("the head holds a control character")
		}
	}
	return line, head[end+1:], nil
}

// parseFields parses the header fields of a head.
func (r *Reader) parseFields(head []byte) ([]Field, error) {
	n := 0
	for len(head) > 0 {
		line, rest, err := cutLine(head)
		if err != nil {
			return nil, err
		}
		if n == MaxFields {
			return nil, refuse(431, "more than %d header fields", MaxFields)
		}
		if err := parseField(line, &r.fields[n]); err != nil {
			return nil, err
		}
		n++
		head = rest
	}
	return r.fields[:n], nil
}

func parseField(line []byte, f *Field) error {
	colon := bytes.IndexByte(line, ':')
	if colon < 1 {
		return bad("a header field has no name")
	}
	for _, c := range line[:colon] {
		if !isToken(c) {
			return bad("a header field's name holds a character that it may not")
		}
	}
	f.Name, f.Value = line[:colon], trimSpace(line[colon+1:])
	return nil
}

func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// framing is how the body that follows a head is delimited.
type framing struct {
	length  int64 // -1: not said
	chunked bool
	close   bool
}

// readFraming reads the fields that say where a message ends. Each may be there
// once, and only one of the two.
func readFraming(fields []Field) (f framing, err error) {
	f.length = -1
	for i := range fields {
		switch field := &fields[i]; {
		case field.Is("content-length"):
			if f.length >= 0 {
				return f, bad("more than one Content-Length")
			}
			if f.length, err = parseLength(field.Value); err != nil {
				return f, err
			}
		case field.Is("transfer-encoding"):
			if f.chunked {
				return f, bad("more than one Transfer-Encoding")
			}
			if !equalFold(field.Value, "chunked") {
				return f, refuse(501, "a transfer coding other than chunked")
			}
			f.chunked = true
		case field.Is("connection"):
			f.close = f.close || hasOption(field.Value, "close")
		}
	}
	if f.chunked && f.length >= 0 {
		return f, bad("both Content-Length and Transfer-Encoding")
	}
	return f, nil
}

func parseLength(value []byte) (n int64, err error) {
	if len(value) == 0 || len(value) > 18 {
		return 0, bad("Content-Length is not a number")
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, bad("Content-Length is not a number")
		}
		n = n*10 + int64(c-'0')
	}
	return n, nil
}

// hasOption looks for an option in a list with commas.
func hasOption(list []byte, lower string) bool {
	for len(list) > 0 {
		option, rest, _ := bytes.Cut(list, []byte{','})
		if equalFold(trimSpace(option), lower) {
			return true
		}
		list = rest
	}
	return false
}
